"""What people and programs call: the command (`cli.py`)."""
