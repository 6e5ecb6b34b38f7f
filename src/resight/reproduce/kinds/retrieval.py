"""Retrieval tables."""
