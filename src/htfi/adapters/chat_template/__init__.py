"""Chat templates of model folders."""
