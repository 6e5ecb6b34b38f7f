"""Tokens on their way into an index: gathered from the store, and which of them train its compression."""
