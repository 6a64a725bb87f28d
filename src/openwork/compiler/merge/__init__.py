"""Co-iteration: loop nests that walk several sparse operands together and assemble a sparse result."""
