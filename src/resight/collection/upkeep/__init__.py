"""Upkeep of a collection: verify, repair, backup and restore, upgrade to the present format."""
