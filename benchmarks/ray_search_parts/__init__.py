"""Parts of ray_search.py."""
