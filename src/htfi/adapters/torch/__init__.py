"""PyTorch, the extra `[train]`: the network that training changes, for reference and for GPUs."""
