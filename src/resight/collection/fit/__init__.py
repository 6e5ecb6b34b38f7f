"""Learning from a collection: code books, whitening, calibration."""
