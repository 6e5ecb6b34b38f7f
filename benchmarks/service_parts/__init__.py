"""The parts of benchmarks/service.py."""
