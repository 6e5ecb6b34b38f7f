"""Rows of which an image may have many, such as one a region: written in a stream, scored, and grouped by image."""
