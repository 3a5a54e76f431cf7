"""A web source that could not work is refused at the start, in one line that says what to write."""

from pathlib import Path

import pytest

from htfi.domain.errors import HtfiError
from htfi.wiring.feeds import describe, resolve

SOURCE = '[[source]]\nname = "web"\n'


def lines(folder: Path, text: str) -> Path:
    file = folder / "m.toml"
    file.write_text(SOURCE + text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('url = "https://www.sec.gov/cgi-bin/browse-edgar"', "EDGAR requires a contact"),
        ('url = "https://feeds.example/a"\nformat = "edgar"\nagent = "A desk"', "contact@your.domain"),
        ('url = "https://feeds.example/a"\nagent = "A desk\\r\\nX: y"', "printable ASCII"),
        ('url = "https://feeds.example/a"\nevery = "10ms"', "at least 1s"),
        ('url = "https://feeds.example/a"\nevery = "often"', "not a duration"),
        ('url = "https://feeds.example/a"\nstamp = "row"', "remove"),
        ('url = "ftp://feeds.example/a"', "no feed reads ftp:// addresses"),
        ('url = "https://user:word@feeds.example/a"', "no user or password"),
        (
            'url = "https://feeds.example/a"\nformat = "page"\n[source.page]\nitem = "a[["',
            "is not a CSS selector",
        ),
        ('url = "https://feeds.example/a"\n[source.page]\nlinks = "a"', "unknown key 'links' in page"),
        ('url = "https://feeds.example/a"\npage = 3', "a table of CSS selectors"),
        ('url = "https://feeds.example/a"\ntickers = "none.json"', "tickers"),
        ('path = "a.csv"\nformat = "rss"', "needs url"),
    ],
)
def test_a_setting_that_cannot_be_stops_the_start(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(HtfiError, match=words) as told:
        resolve([], lines(tmp_path, text))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"0": 3}',
        b'{"0": {"cik_str": "x", "ticker": 4}}',
        b"\xff",
        b'{"fields": [], "data": [1]}',
    ],
)
def test_a_ticker_file_of_another_form_stops_the_start(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(HtfiError, match=r"t\.json"):
        resolve([], lines(tmp_path, 'url = "https://feeds.example/a"\ntickers = "t.json"'))


def test_a_run_from_before_web_sources_goes_on(tmp_path: Path) -> None:
    """What a source does not state is no part of what tells its run from others."""
    (tmp_path / "a.csv").write_text("ts,price,symbol\n")
    settings = describe(resolve([str(tmp_path / "a.csv")]))[0].settings
    assert not {"every", "agent", "publisher", "max_age", "tickers", "page"} & settings.keys()


def test_what_is_read_is_recorded_and_the_manner_of_asking_may_change(tmp_path: Path) -> None:
    more = 'agent = "A desk a@b.example"\nevery = "5m"\nmax_age = "7d"\npublisher = "SEC"'
    info = describe(resolve([], lines(tmp_path, f'url = "https://www.sec.gov/x"\n{more}')))[0]
    assert (info.origin, info.settings["max_age"], info.settings["publisher"]) == (
        "https://www.sec.gov/x",
        "7d",
        "SEC",
    )
    assert not {"agent", "every", "tickers"} & info.settings.keys()
