"""Evidence for an answer: boxes, match lines and heat maps on pixels, maps, and one HTML page that shows them."""
