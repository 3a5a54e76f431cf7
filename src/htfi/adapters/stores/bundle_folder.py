"""Files of a governance folder: the roll of officers, and proposed bundles with their signatures."""

from pathlib import Path

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import make_private, write_atomically

OFFICERS_FILE = "officers.toml"
BUNDLES_FOLDER = "bundles"
MAX_BUNDLE_BYTES = 1 << 20


def bundle_path(folder: Path, number: int) -> Path:
    """Where a proposed bundle lies."""
    return folder / BUNDLES_FOLDER / f"{number:06}.bundle"


def read_text(path: Path, what: str) -> str:
    """A file of text. Raises: InvalidInput where it is missing, too large or no text, DependencyUnavailable."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BUNDLE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"there is no {what} at {path}") from None
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_BUNDLE_BYTES:
        raise InvalidInput(f"{path}: is larger than {MAX_BUNDLE_BYTES >> 20} MB: it is no {what}")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path}: is not UTF-8 text") from None


def write_text(path: Path, text: str) -> None:
    """Write a file of text, whole and durable. Raises: DependencyUnavailable."""
    try:
        make_private(path.parent)
        write_atomically(path, text.encode())
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be written: {error.strerror}") from error
