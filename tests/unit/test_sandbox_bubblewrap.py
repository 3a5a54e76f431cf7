"""Tests of the command line of bubblewrap."""

from pathlib import Path

import pytest

from htfi.adapters.sandbox import bubblewrap


def test_bubblewrap_is_started_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The confined process is started with a PATH of its own, in which another place is not found."""
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    words = bubblewrap.command([], {}, {}, home=Path("/nowhere"), cache_folder=Path("/cache"))
    assert words[0] == str(program.resolve())
