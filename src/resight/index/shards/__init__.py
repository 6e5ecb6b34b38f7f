"""An index in shards on several machines: which node holds what, how it gets there, and how all of it is searched."""
