"""From an encoded query to ranked, verified and located answers: `pipeline.py` has the stages in order."""
