"""Reviews: people vote on pairs, and votes correct the probabilities."""
