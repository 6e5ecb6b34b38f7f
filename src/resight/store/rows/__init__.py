"""Records as rows of an arrow table, and back; for any store that keeps arrow tables."""
