"""A digest is found again only for a file that has not changed, however its times were restored."""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from htfi.domain import file_digests
from htfi.domain.errors import IntegrityError
from htfi.domain.file_digests import FileDigestCache, file_digest
from htfi.narrative.config import EncodingConfig
from htfi.wiring import encoder

LATER_NS = 3600 * 10**9


class CountingDigest:
    """`file_digest`, which notes what was read whole."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, file: Path) -> str:
        self.read.append(file.name)
        return file_digest(file)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> CountingDigest:
    found = CountingDigest()
    monkeypatch.setattr(file_digests, "file_digest", found)
    return found


def an_hour_later() -> int:
    return time.time_ns() + LATER_NS


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"first")
    return file


def test_a_file_that_stays_is_read_once(tmp_path: Path, weights: Path, counted: CountingDigest) -> None:
    folder = tmp_path / "digests"
    found = [FileDigestCache(folder, an_hour_later).digest(weights) for _ in range(3)]
    assert found == [sha256(b"first")] * 3
    assert counted.read == ["model.safetensors"]
    assert [entry.stat().st_mode & 0o077 for entry in folder.iterdir()] == [0]


def rewrite(file: Path) -> None:
    file.write_bytes(b"other")


def rewrite_and_restore_times(file: Path) -> None:
    before = file.stat()
    file.write_bytes(b"other")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_and_restore_times(file: Path) -> None:
    before = file.stat()
    other = file.with_name("other")
    other.write_bytes(b"other")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


@pytest.mark.parametrize("change", [rewrite, rewrite_and_restore_times, replace_and_restore_times])
def test_a_changed_file_of_the_same_size_is_read_anew(
    tmp_path: Path, weights: Path, change: Callable[[Path], None]
) -> None:
    cache = FileDigestCache(tmp_path / "digests", an_hour_later)
    assert cache.digest(weights) == sha256(b"first")
    time.sleep(0.02)  # longer than the coarsest clock of a file system's times here
    change(weights)
    assert cache.digest(weights) == sha256(b"other")


def test_a_file_that_has_just_changed_is_not_kept(
    tmp_path: Path, weights: Path, counted: CountingDigest
) -> None:
    folder = tmp_path / "digests"
    assert [FileDigestCache(folder).digest(weights) for _ in range(2)] == [sha256(b"first")] * 2
    assert counted.read == ["model.safetensors"] * 2
    assert not folder.exists()


@pytest.mark.parametrize("damage", [b"", b"{}", b"first-other"])
def test_a_damaged_entry_is_no_entry(tmp_path: Path, weights: Path, damage: bytes) -> None:
    cache = FileDigestCache(tmp_path / "digests", an_hour_later)
    cache.digest(weights)
    (entry,) = (tmp_path / "digests").iterdir()
    content = entry.read_bytes().replace(sha256(b"first").encode(), sha256(b"other").encode())
    entry.write_bytes(content if damage == b"first-other" else damage)
    assert cache.digest(weights) == sha256(b"first")


def test_nothing_is_kept_where_the_system_notes_no_change(
    tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "_HAS_CHANGE_TIME", False)
    FileDigestCache(tmp_path / "digests", an_hour_later).digest(weights)
    assert not (tmp_path / "digests").exists()


def test_a_missing_file_is_said_to_be_missing_and_a_folder_that_cannot_be_written_is_passed_over(
    tmp_path: Path, weights: Path
) -> None:
    (tmp_path / "file").touch()
    assert FileDigestCache(tmp_path / "file" / "digests", an_hour_later).digest(weights) == sha256(b"first")
    with pytest.raises(FileNotFoundError):
        FileDigestCache(tmp_path / "digests").digest(tmp_path / "none")


def test_a_run_holds_the_shipped_encoder_to_what_its_files_are_said_to_be() -> None:
    with pytest.raises(IntegrityError, match="was changed"):
        encoder.open_encoder(EncodingConfig(), lambda _: "0" * 64)
