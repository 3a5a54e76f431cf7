"""The quarantine keeps every refused row once, with counts, also over a restart and on a failing disk."""

import resource
from pathlib import Path

import msgspec
import pytest

from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import QuarantinedRow


def rejection(row: int, reason: str = "late", source: str = "s") -> QuarantinedRow:
    return QuarantinedRow(source, row, reason, "why", '{"a":1}')


def test_each_row_is_a_line_with_its_reason(tmp_path: Path) -> None:
    store = QuarantineFile(tmp_path / "q.jsonl")
    store.set_aside(rejection(1))
    store.set_aside(rejection(2, "bad_price", "t"))
    store.set_aside(rejection(3))
    store.close()
    lines = (tmp_path / "q.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=QuarantinedRow) for line in lines] == [
        rejection(1), rejection(2, "bad_price", "t"), rejection(3),
    ]  # fmt: skip
    assert store.counts() == {"bad_price": 1, "late": 2}
    assert store.counts_by_source() == {"s": {"late": 2}, "t": {"bad_price": 1}}


def test_going_on_cuts_back_what_came_after_the_saved_position(tmp_path: Path) -> None:
    store = QuarantineFile(tmp_path / "q.jsonl")
    store.set_aside(rejection(1))
    saved = store.position()
    store.set_aside(rejection(2))
    store.close()
    again = QuarantineFile(tmp_path / "q.jsonl", saved)
    again.set_aside(rejection(2))
    again.close()
    assert (tmp_path / "q.jsonl").read_bytes().count(b"\n") == 2
    assert again.counts() == {"late": 2}


def test_a_new_run_starts_empty(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("old\n", encoding="utf-8")
    QuarantineFile(tmp_path / "q.jsonl").close()
    assert (tmp_path / "q.jsonl").read_bytes() == b""


def test_a_file_that_lost_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="shorter than when the run stopped"):
        QuarantineFile(tmp_path / "q.jsonl", {"num_bytes": 5, "counts": {}})


def test_a_folder_in_its_place_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        DependencyUnavailable, match="Is a directory: free some disk space or choose another folder"
    ):
        QuarantineFile(tmp_path)


def test_a_disk_that_takes_no_more_is_one_line(tmp_path: Path) -> None:
    store = QuarantineFile(tmp_path / "q.jsonl")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        store.set_aside(rejection(1))
        store.set_aside(rejection(2))
        with pytest.raises(DependencyUnavailable, match=r"q\.jsonl: File too large: free some disk space"):
            store.position()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert store.position()["num_bytes"] == (tmp_path / "q.jsonl").stat().st_size  # and goes on when it can
    store.close()
