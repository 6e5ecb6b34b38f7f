"""Parts of bigger_than_memory.py."""
