"""Rows as points of Qdrant, on a server, in a local folder or in this process."""
