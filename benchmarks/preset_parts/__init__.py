"""What the benchmarks of presets share: the sets with known truth, and their halves."""
