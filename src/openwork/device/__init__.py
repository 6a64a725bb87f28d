"""Tensors on devices: adapters, tensors in their memory, and the operations that run there. See docs/devices.md."""
