"""The folder of what a run in memory must put on disk: files and tables whose rows have to be sorted."""

import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir


@contextmanager
def spool_folder() -> Generator[Path]:
    """A name under the temporary folder that cannot be guessed. Who writes there makes it; it is removed at the end.

    `TemporaryDirectory` makes its folder before it can be closed, so that Ctrl-C between the two leaves the folder.
    """
    folder = Path(gettempdir()) / f"htfi-{secrets.token_hex(8)}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
