"""Other libraries' interfaces over openwork's tensors: a script changes its import and goes on."""
