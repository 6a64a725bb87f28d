"""One sparse operand: loop nests that walk its levels and locate everything else."""
