"""Entries of a crater catalogue that are the same crater: their circles coincide."""
