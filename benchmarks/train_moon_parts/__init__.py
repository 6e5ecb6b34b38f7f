"""Parts of benchmarks/train_moon.py."""
