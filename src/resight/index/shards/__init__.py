"""An index in shards on several machines: placement of the shards on nodes, transfer of their files, and search."""
