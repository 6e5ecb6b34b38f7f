"""Matches of two collections: what each shows of the other."""
