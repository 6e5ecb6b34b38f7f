"""Indexes over rows, many per image where images have regions: written in a stream, scored, and grouped by image."""
