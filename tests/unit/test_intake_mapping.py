"""A mapping says how sources are read; every mistake in it is one line that names file and key."""

from pathlib import Path

import pytest

from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.mapping import load_mapping, source_name


def mapping(folder: Path, text: str) -> Path:
    file = folder / "m.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_every_key_is_read_and_paths_start_at_the_mapping(tmp_path: Path) -> None:
    text = """
        [[source]]
        name = "t"
        path = "data/t.csv"
        kind = "bar"
        symbol = "SPX"
        only = ["SPX"]
        zone = "Europe/Berlin"
        unit = "ms"
        interval = "5m"
        bar_stamp = "end"
        date_at = "17:00"
        date_zone = "UTC"
        delay = "1h"
        tolerance = "0s"
        duplicates = "keep"
        order = "sort"
        format = "csv"
        [source.columns]
        close = "last"

        [[source]]
        name = "live"
        url = "ws://localhost:1/x"
        stamp = "arrival"
        subscribe = '{"op":"subscribe"}'

        [[source]]
        name = "pipe"
        stdin = true
        """
    file, live, pipe = load_mapping(mapping(tmp_path, text))
    assert file.path == str(tmp_path / "data/t.csv")
    assert (file.only, file.tolerance_ns, file.delay_ns) == (("SPX",), 0, 3600 * 10**9)
    assert dict(file.columns) == {"close": "last"}
    assert (live.live, live.by_arrival, pipe.live, pipe.by_arrival) == (True, True, True, False)


def test_a_source_without_name_takes_its_files(tmp_path: Path) -> None:
    (spec,) = load_mapping(mapping(tmp_path, '[[source]]\npath = "x/AAPL.csv.gz"'))
    assert spec.name == "AAPL"
    assert source_name(".csv") == ".csv"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [", "not valid TOML"),
        ("", r"no \[\[source\]\] table"),
        ("sources = 1", "unknown key 'sources'"),
        ("[source]\nname='a'", r"no \[\[source\]\] table"),
        ("source = [1]", r"must be a table, \[\[source\]\]"),
        ("[[source]]\nname='a'\npaht='b'", "unknown key 'paht': the keys are name, path"),
        ("[[source]]\nkind='bar'", "state its name"),
        ("[[source]]\nname=1", "name must be a text in quotes"),
        ("[[source]]\nname='a'\nstdin='yes'", "stdin must be true or false"),
        ("[[source]]\nname='a'\nonly='VIX'", "only must be a list of texts"),
        ("[[source]]\nname='a'\n[source.columns]\nprice=1", "columns must be a table of texts"),
        ("[[source]]\nname='a'\n[source.columns]\nprize='x'", "unknown field 'prize' in columns"),
        ("[[source]]\nname='a'\nkind='tick'", "kind = 'tick': choose one of trade, quote, bar, news, macro"),
        ("[[source]]\nname='a'\npath='b'\nstdin=true", "state one of path, url and stdin"),
        ("[[source]]\nname='a'\nzone='Mars/Base'", "zone: 'Mars/Base' is not a time zone"),
        ("[[source]]\nname='a'\ntolerance='fast'", "tolerance: 'fast' is not a duration"),
        ("[[source]]\nname='a'\ninterval='0s'", "interval: '0s' is not an interval"),
        ("[[source]]\nname='a'\ninterval='volume:x'", "interval: 'volume:x' is not an interval"),
        ("[[source]]\nname='a'\ndate_at='25:00'", "date_at: '25:00' is not a time of day"),
        ("[[source]]\nname='a'\n[[source]]\nname='a'", "two sources are named 'a'"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    file = mapping(tmp_path, text)
    with pytest.raises(InvalidInput, match=said) as caught:
        load_mapping(file)
    assert str(caught.value).startswith(f"mapping {file}")
    assert "\n" not in str(caught.value)


def test_a_mapping_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.toml: No such file"):
        load_mapping(tmp_path / "none.toml")


def test_the_file_of_a_fix_session_starts_at_the_folder_of_the_mapping(tmp_path: Path) -> None:
    file = tmp_path / "feeds.toml"
    file.write_text(
        '[[source]]\nname = "a"\nurl = "fix://desk/prices.toml"\n[[source]]\nname = "b"\nurl = "fix:///etc/b.toml"\n'
    )
    assert [spec.url for spec in load_mapping(file)] == [
        f"fix://{tmp_path}/desk/prices.toml",
        "fix:///etc/b.toml",
    ]
