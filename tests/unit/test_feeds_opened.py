"""Files of a feed are opened side by side where cores are free, and all are closed where one cannot be opened."""

import threading
from pathlib import Path

import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.time import SystemClock
from htfi.pipeline.intake.spec import SourceSpec
from htfi.wiring import feeds
from htfi.wiring.feeds import open_feed, resolve
from htfi.wiring.in_memory_run import MemoryQuarantine

CORES = {"one core": [0], "two cores": [0, 1]}


class _Reader:
    """A reader that says whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("cores", CORES)
def test_the_first_file_that_cannot_be_opened_is_named_and_the_others_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: str
) -> None:
    opened: list[_Reader] = []

    def open_one(spec: SourceSpec, block_rows: int, inbox: Path) -> _Reader:
        if spec.name.startswith("bad"):
            raise InvalidInput(f"{spec.name}: no columns")
        opened.append(_Reader())
        return opened[-1]

    monkeypatch.setattr(feeds, "usable_cores", lambda: CORES[cores])
    monkeypatch.setattr(feeds, "_open_file", open_one)
    specs = resolve([f"{name}.csv" for name in ("a", "bad1", "b", "bad2")])
    with pytest.raises(InvalidInput, match="bad1: no columns"):
        open_feed(specs, inbox=tmp_path, quarantine=MemoryQuarantine(), clock=SystemClock())
    assert [reader.is_closed for reader in opened] == [True, True]


def test_two_files_are_opened_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=20.0)
    real = feeds._open_file

    def open_one(spec: SourceSpec, block_rows: int, inbox: Path) -> object:
        both.wait()
        return real(spec, block_rows, inbox)

    for day, name in enumerate("ab", 1):
        (tmp_path / f"{name}.csv").write_text(f"ts,symbol,close\n2024-01-0{day}T21:00:00Z,{name},100\n")
    monkeypatch.setattr(feeds, "usable_cores", lambda: CORES["two cores"])
    monkeypatch.setattr(feeds, "_open_file", open_one)
    specs = resolve([str(tmp_path / f"{name}.csv") for name in "ba"])
    feed = open_feed(specs, inbox=tmp_path / "inbox", quarantine=MemoryQuarantine(), clock=SystemClock())
    try:
        assert [source.name for source in feed._sources] == ["b", "a"]
    finally:
        feed.close()
