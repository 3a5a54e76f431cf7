"""Makes a new or renamed file's directory entry survive the loss of power; key files and memories call it."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Raises: OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
