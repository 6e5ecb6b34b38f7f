"""What is twice, and what leaks: pairs, groups, matches between collections, reviews and votes."""
