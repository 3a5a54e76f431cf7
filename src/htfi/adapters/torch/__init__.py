"""PyTorch, the extra `[train]`: the trainer of the mini models, and a network for reference and for GPUs."""
