"""Intervals, paired tests, corrections for many comparisons, and how good probabilities are."""
