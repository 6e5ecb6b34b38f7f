"""From an encoded query to ranked, verified, localised answers. `pipeline.py` is the whole story on one screen."""
