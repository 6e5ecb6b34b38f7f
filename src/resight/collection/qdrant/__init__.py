"""A collection as a Qdrant collection, for those who run Qdrant: planned, uploaded, and searched there."""
