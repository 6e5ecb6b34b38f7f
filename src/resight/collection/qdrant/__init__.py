"""A collection in Qdrant: plan and upload an export, and search it."""
