"""Why an answer was given: boxes, match lines and heat maps on pixels, and one HTML page that shows them."""
