"""Training and distillation with PyTorch, the extra `[train]`."""
