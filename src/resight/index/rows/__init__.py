"""Rows of images, one or several (regions) per image: files, sampling, compression and scores per image."""
