"""A universal sparse tensor."""
