"""Rows with visual words on their way into posting lists."""
