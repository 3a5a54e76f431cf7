"""Archives of tests/data, unpacked as every Python from 3.11 on can."""

import tarfile
from pathlib import Path


def unpack(file: Path, folder: Path) -> None:
    """The files of an archive, into a folder."""
    with tarfile.open(file) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:  # before 3.11.4
            archive.extractall(folder)
