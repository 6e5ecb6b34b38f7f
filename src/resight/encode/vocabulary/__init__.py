"""How visual words are found among local features: k-means, k-majority, and trees of either."""
