"""A folder that appears whole or not at all: it is filled beside its place under a name of its own, then renamed."""

import fcntl
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import PRIVATE_FOLDER, sync_folder


@contextmanager
def draft_folder(place: Path) -> Generator[Path]:
    """An empty folder to fill, which becomes `place` at the end of the block and is removed where the block fails.

    What a killed process left is removed by the next. Raises: InvalidInput where `place` holds something or another
    process fills it; DependencyUnavailable.
    """
    draft = place.with_name(f".{place.name}.part")
    try:
        if place.is_symlink() or (place.exists() and (not place.is_dir() or any(place.iterdir()))):
            raise InvalidInput(f"{place} is there and not empty: name a folder that is not")
        if draft.is_symlink():
            raise InvalidInput(f"{draft} is a link to another place: remove it")
        draft.mkdir(PRIVATE_FOLDER, exist_ok=True)
        descriptor = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise DependencyUnavailable(f"{draft}: cannot be made: {error.strerror}") from error
    try:
        _claim(descriptor, draft, place)
        try:
            yield draft
            for folder, _, _ in os.walk(draft):
                sync_folder(Path(folder))
            draft.rename(place)  # takes the place of an empty folder
            sync_folder(place.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise DependencyUnavailable(
            f"{place}: cannot be written: {error.strerror}: nothing is left of it; free some disk space and repeat "
            "the command"
        ) from error
    finally:
        os.close(descriptor)


def _claim(descriptor: int, draft: Path, place: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), draft.stat()):
            raise BlockingIOError
    except (BlockingIOError, FileNotFoundError):
        raise InvalidInput(f"{place} is being written by another command: wait until it has ended") from None
    if os.fstat(descriptor).st_uid != os.geteuid():
        raise InvalidInput(f"{draft} belongs to another user: remove it, or name a folder elsewhere")
    os.fchmod(descriptor, PRIVATE_FOLDER)
    for left in draft.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()
