"""Fast inner loops in C with their numpy twins, and the one place that chooses between them. None yet: numpy serves."""
