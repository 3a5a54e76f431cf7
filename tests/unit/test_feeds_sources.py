"""What a person names on the command line becomes the right sources with the right settings."""

from pathlib import Path

import pytest

from htfi.domain.errors import InvalidInput
from htfi.wiring.feeds import describe, resolve

MAPPING = """
[[source]]
name = "ticks"
path = "old/ticks.csv"
kind = "trade"
duplicates = "keep"

[[source]]
name = "wire"
kind = "news"
"""


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    file = tmp_path / "m.toml"
    file.write_text(MAPPING, encoding="utf-8")
    return file


def test_formats_and_names_come_from_the_files() -> None:
    specs = resolve(["a/AAPL.csv.gz", "b.PARQUET", "c.ndjson", "-", "ws://host:1/x"])
    assert [spec.name for spec in specs] == ["AAPL", "b", "c", "stdin", "host-1"]
    assert [spec.format for spec in specs] == ["csv", "parquet", "jsonl", "", ""]
    assert [spec.live for spec in specs] == [False, False, False, True, True]


def test_a_mapping_alone_opens_all_of_its_sources(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text('[[source]]\nname="p"\nstdin=true\n[[source]]\npath="x.csv"\n', encoding="utf-8")
    assert [(spec.name, spec.stdin, spec.path) for spec in resolve([], file)] == [
        ("p", True, ""), ("x", False, str(tmp_path / "x.csv")),
    ]  # fmt: skip


def test_paths_take_the_settings_of_their_source_wherever_they_lie(mapping: Path) -> None:
    (by_file,) = resolve(["/elsewhere/ticks.csv"], mapping)
    (by_name,) = resolve(["ticks=/elsewhere/other.csv"], mapping)
    (by_stem,) = resolve(["wire.jsonl"], mapping)
    (piped,) = resolve(["wire=-"], mapping)
    assert (by_file.duplicates, by_file.path) == ("keep", "/elsewhere/ticks.csv")
    assert (by_name.name, by_name.path) == ("ticks", "/elsewhere/other.csv")
    assert (by_stem.kind, piped.kind, piped.stdin) == ("news", "news", True)


def test_a_source_without_a_place_asks_for_one(mapping: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"source 'wire' has no path, url or stdin: state one, or .* wire=PATH"
    ):
        resolve([], mapping)


def test_standard_input_can_be_one_source_only() -> None:
    with pytest.raises(InvalidInput, match="standard input can be only one source"):
        resolve(["-", "-"])


def test_defaults_fill_in_what_nobody_stated(mapping: Path) -> None:
    ticks, other = resolve(
        ["ticks.csv", "o.csv"], mapping, duplicates="quarantine", zone="UTC", tolerance="5s"
    )
    assert (ticks.duplicates, ticks.zone) == ("keep", "UTC")
    assert other.tolerance_ns == 5 * 10**9


def test_an_unknown_format_can_be_stated(tmp_path: Path) -> None:
    (spec,) = resolve([str(tmp_path / "x.dat")], format="csv")
    assert spec.format == "csv"


def test_a_description_does_not_depend_on_the_folder(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "x.csv").write_text("ts,price\n", encoding="utf-8")
        found.append(describe(resolve([str(folder / "x.csv")])))
    assert found[0] == found[1]
    (info,) = found[0]
    assert (info.name, info.origin, info.num_bytes) == ("x", "x.csv", 9)
    assert "path" not in info.settings
    assert describe(resolve(["-"]))[0].num_bytes is None
