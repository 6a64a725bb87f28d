"""Direct solvers of sparse systems: orderings, symbolic and numeric phases on supernodes, solutions, updates."""
