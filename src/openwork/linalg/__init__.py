"""Linear algebra on tensors of any format."""
