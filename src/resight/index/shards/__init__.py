"""An index cut into shards that lie on several machines: who gets what, where it lies, and how all of it is asked."""
