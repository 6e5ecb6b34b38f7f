"""What benchmarks/speed.py is made of: tokens to work on, peers, one module a kind of work, the table and the plot."""
