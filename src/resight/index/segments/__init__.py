"""Several indexes over parts of a collection, searched as one."""
