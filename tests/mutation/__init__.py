"""Mutants of source lines: `changes` makes them, `record` knows which tests see a line, `trial` runs the tests."""
