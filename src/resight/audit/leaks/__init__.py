"""Leak audits: what a training set contains of an evaluation set; find_leaks.py is the way in."""
