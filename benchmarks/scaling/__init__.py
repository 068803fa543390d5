"""What benchmarks/scale.py is made of: data written on the spot, and one call in a process of its own."""
