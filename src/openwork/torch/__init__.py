"""Tensors over torch buffers: gradients, and torch's own functions on Tensors.

A Tensor is differentiable in its values; its structure is constant. `rules` says what stands for each operation whose
kernels torch cannot see.
"""
