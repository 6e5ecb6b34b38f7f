"""Parts of train_craters.py."""
