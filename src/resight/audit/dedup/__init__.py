"""Duplicates within a collection, or between two: find_duplicates.py is the way in."""
