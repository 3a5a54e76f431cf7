"""Entries of RSS, Atom, EDGAR and pages are read as they are written in the wild."""

from datetime import date

import pytest

from htfi.adapters.feeds.web.edgar import load_tickers, parse_current, parse_submissions
from htfi.adapters.feeds.web.entries import BadDocument, normalise_time
from htfi.adapters.feeds.web.page_limits import limit_html
from htfi.adapters.feeds.web.page_rules import FED, GENERIC, candidate_rules, read_clock, read_day
from htfi.adapters.feeds.web.pages import read_list, read_statement
from htfi.adapters.feeds.web.rss import parse_feed
from web_documents import (
    accession,
    atom,
    atom_entry,
    current_filings,
    fed_statement,
    filing,
    rss,
    rss_item,
    submissions,
)

RDF = b"""<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel rdf:about="https://bank.example/"><title>A central bank</title></channel>
<item rdf:about="https://bank.example/1"><title>Rates held</title><link>https://bank.example/1</link>
<dc:date>2024-05-13T09:00:00+09:00</dc:date></item></rdf:RDF>"""


def test_rdf_is_read_with_its_own_ids_and_times() -> None:
    entry = next(iter(parse_feed(RDF).entries))
    assert (entry.key, entry.headline, entry.published) == (
        "https://bank.example/1",
        "Rates held",
        "2024-05-13T09:00:00+09:00",
    )
    assert entry.publisher == "A central bank"


def test_an_entry_names_its_own_source_symbols_and_fullest_body() -> None:
    more = (
        '<source url="https://paper.example/rss">The Paper</source><media:title>Photo</media:title>'
        '<category domain="stock-ticker">AAPL</category><category>Markets</category>'
        "<content:encoded><![CDATA[<p>The whole story.</p>]]></content:encoded>"
    )
    entry = next(iter(parse_feed(rss(rss_item(1, more=more))).entries))
    assert entry.publisher == "The Paper"
    assert entry.symbols == ["AAPL"]
    assert entry.body == "<p>The whole story.</p>"
    assert entry.headline == "Story 1 moves the market"


def test_xhtml_content_keeps_its_words_apart() -> None:
    body = '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>One.</p><p>Two.</p></div></content>'
    entry = next(
        iter(parse_feed(atom(atom_entry(1, "A").replace("<summary>A note.</summary>", body))).entries)
    )
    assert entry.body.split() == ["One.", "Two."]


def test_entries_without_an_id_are_known_by_link_or_by_what_they_say() -> None:
    items = [
        "<item><title>A</title><link>https://x.example/1</link></item>",
        "<item><title>B</title></item>",
        "<item><title>B</title></item>",
    ]
    first, second, third = reversed(list(parse_feed(rss(*items)).entries))
    assert first.key == "https://x.example/1"
    assert second.key == third.key


def test_more_entries_than_a_document_may_have_are_said_to_be_there() -> None:
    found = parse_feed(rss(*["<item><title>A</title></item>"] * 10_001))
    assert len(list(found.entries)) == 10_000
    assert found.error == "more than 10000 entries"


@pytest.mark.parametrize(
    ("text", "published"),
    [
        ("Fri, 10 May 2024 16:30:01 EDT", "2024-05-10T16:30:01-04:00"),
        ("10 May 2024 16:30 +0530", "2024-05-10T16:30:00+05:30"),
        ("Fri, 10 May 2024 16:30:01 -0000", "2024-05-10T16:30:01+00:00"),
        ("Fri, 10 May 2024 16:30:01", "2024-05-10T16:30:01"),  # no zone: the row parser asks for one
        ("2024-05-10T16:30:01Z", "2024-05-10T16:30:01Z"),
        ("2024-05-10", "2024-05-10"),
        ("Fri, 99 May 2024 16:30:01 GMT", "Fri, 99 May 2024 16:30:01 GMT"),
        ("Fri, 10 May 2024 16:30:01 +9999", "Fri, 10 May 2024 16:30:01 +9999"),
        ("", ""),
    ],
)
def test_published_times_of_known_forms_become_iso(text: str, published: str) -> None:
    assert normalise_time(text) == published


def filed(rows: list[tuple[int, str, str, str, str]]) -> dict[str, tuple[str, bool]]:
    return {
        entry.key: (entry.amends, entry.retracts)
        for entry in parse_submissions(submissions(rows), {}).entries
    }


def test_an_amendment_names_the_filing_of_its_own_report_or_none() -> None:
    rows = [
        (6, "8-K/A", "2024-06-01T15:00:00.000Z", "2024-01-01", "8.01"),  # its report is not among these
        (5, "10-K/A", "2024-05-20T15:00:00.000Z", "2023-12-31", ""),
        (4, "10-K/A", "2024-05-10T15:00:00.000Z", "2023-12-31", ""),
        (3, "10-Q", "2024-05-01T15:00:00.000Z", "2024-03-31", ""),
        (2, "10-K", "2024-02-01T15:00:00.000Z", "2023-12-31", ""),
        (1, "10-K", "2023-02-01T15:00:00.000Z", "2022-12-31", ""),
    ]
    found = filed(rows)
    assert found[accession(4)] == (accession(2), False)
    assert found[accession(5)] == (accession(4), False)
    assert found[accession(6)] == ("", False)


def test_an_amendment_in_the_feed_goes_by_its_items() -> None:
    feed = current_filings(
        filing(4, "8-K/A", "APPLE INC", 320193, items=("5.02", "9.01"), at="16:10:00"),
        filing(3, "8-K", "APPLE INC", 320193, items=("2.02", "9.01"), at="16:05:00"),
        filing(2, "8-K", "APPLE INC", 320193, items=("5.02", "9.01"), at="16:00:00"),
        filing(1, "8-K", "OTHER INC", 77, items=("5.02",), at="16:08:00"),
    )
    assert {entry.key: entry.amends for entry in parse_current(feed, "", {}).entries}[
        accession(4)
    ] == accession(2)


def test_a_withdrawn_registration_is_taken_back() -> None:
    rows = [(2, "RW", "2024-05-20T15:00:00.000Z", "", ""), (1, "S-1", "2024-02-01T15:00:00.000Z", "", "")]
    assert filed(rows)[accession(2)] == (accession(1), True)


def test_a_filer_whose_times_are_new_yorks_under_a_z_is_recognised() -> None:
    rows = [(number, "8-K", f"2024-05-{10 + number}T07:30:00.000Z", "", "8.01") for number in range(4)]
    entries = list(parse_submissions(submissions(rows), {}).entries)
    assert entries[0].published == "2024-05-10T07:30:00-04:00"
    true = [(number, "8-K", f"2024-05-{10 + number}T11:30:00.000Z", "", "8.01") for number in range(4)]
    assert (
        next(iter(parse_submissions(submissions(true), {}).entries)).published == "2024-05-10T11:30:00.000Z"
    )


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b'{"filings": {"recent": {"accessionNumber": 3}}}', b'{"filings": 1}', b"\xff"],
)
def test_json_of_another_form_is_no_list_of_filings(body: bytes) -> None:
    with pytest.raises(BadDocument):
        parse_submissions(body, {})


def test_columns_of_unequal_length_cost_only_what_is_missing() -> None:
    body = (
        b'{"name":"A","filings":{"recent":{"accessionNumber":["0000320193-24-000001",null],"form":["8-K"]}}}'
    )
    first, second = sorted(parse_submissions(body, {}).entries, key=lambda entry: entry.refused is not None)
    assert (first.headline, first.refused) == ("A files 8-K", None)
    assert second.refused is not None


def test_both_forms_of_the_ticker_file_are_read(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "t.json"
    file.write_bytes(
        b'{"fields":["cik","name","ticker","exchange"],"data":[[320193,"Apple","AAPL","Nasdaq"],[1652044,"A","GOOG",null]]}'
    )
    assert load_tickers(file) == {320193: ("AAPL",), 1652044: ("GOOG",)}


@pytest.mark.parametrize(
    ("text", "month_first", "day"),
    [
        ("June 12, 2024", True, date(2024, 6, 12)),
        ("12 June 2024", False, date(2024, 6, 12)),
        ("Published on 1st of Sept 2024", False, date(2024, 9, 1)),
        ("6/12/2024", True, date(2024, 6, 12)),
        ("6/12/2024", False, date(2024, 12, 6)),
        ("31/12/2024", True, None),
        ("12.06.2024", False, date(2024, 6, 12)),
        ("2024-06-12T14:00", False, date(2024, 6, 12)),
        ("Feb 30, 2024 and March 1, 2024", False, date(2024, 3, 1)),
        ("no date", False, None),
    ],
)
def test_days_are_read_as_banks_write_them(text: str, month_first: bool, day: date | None) -> None:
    assert read_day(text, month_first=month_first) == day


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("For release at 2:00 p.m. EDT", "2024-06-12T14:00:00-04:00"),
        ("For release at 2 pm", "2024-06-12T14:00:00-04:00"),
        ("at 12:15 a.m. ET", "2024-06-12T00:15:00-04:00"),
        ("14:15 CET", "2024-06-12T14:15:00+02:00"),
        ("12:00 BST", "2024-06-12T12:00:00+01:00"),
        ("13:00 p.m.", None),
        ("soon", None),
    ],
)
def test_hours_of_release_are_read_in_their_zone(text: str, iso: str | None) -> None:
    clock = read_clock(text, date(2024, 6, 12), "America/New_York")
    assert (clock.isoformat() if clock else None) == iso


def test_a_list_of_an_unknown_bank_is_found_by_its_dated_links() -> None:
    page = (
        b"<html><body><nav><a href='/a'>About this central bank, 1 May 2024</a></nav><div class='c'>"
        b"<table><tr><td>14 May 2024</td><td><a href='/2'>Policy rate kept unchanged</a></td></tr>"
        b"<tr><td>2 April 2024</td><td><a href='/1'>Policy rate raised to 4.5%</a></td></tr></table></div>"
    )
    listed, _ = read_list(page, "", candidate_rules("norges.example", {}, ""))
    assert [(line.link, line.title, line.published) for line in listed] == [
        ("/2", "Policy rate kept unchanged", "2024-05-14"),
        ("/1", "Policy rate raised to 4.5%", "2024-04-02"),
    ]


def test_a_statement_of_an_unknown_bank_is_its_main_part() -> None:
    page = (
        b"<html><head><title>Bank</title><meta property='og:site_name' content='Norges Bank'></head><body>"
        b"<header>Menu</header><main><h1>Policy rate kept</h1><time datetime='2024-05-14T10:00:00+02:00'>14 May</time>"
        b"<p>The Committee decided.</p><ul><li>First</li><li>Second</li></ul>"
        b"<div class='share-buttons'>Share</div></main>"
        b"<aside>See</aside><script>alert('x')</script><footer>Contact</footer></body></html>"
    )
    found = read_statement(page, "", GENERIC)
    assert (found.heading, found.published, found.publisher) == (
        "Policy rate kept",
        "2024-05-14T10:00:00+02:00",
        "Norges Bank",
    )
    assert found.text.splitlines()[-3:] == ["The Committee decided.", "First", "Second"]


@pytest.mark.parametrize(
    "page",
    [
        b"<div " + b" ".join(b"a%d=1" % number for number in range(200_000)) + b">x",
        b"<div>" * 200_000,
        b"<select>" + b"<option>" * 200_000,
        b"<b><p>x" * 50_000,
        b"<!--" * 200_000,
        b"<" * 300_000,
        b"<svg>" * 200_000,
        b"<div a='" * 200_000,
    ],
)
def test_pages_made_to_cost_time_are_bounded_before_they_are_parsed(page: bytes) -> None:
    """Each would keep the parser busy for minutes; what reaches it is small or flat."""
    assert read_list(page, "", candidate_rules("bank.example", {}, ""))[0] == []
    assert limit_html("<div>" * 1000).count("<div>") == 200


def test_the_text_of_a_page_is_the_same_tamed_or_not() -> None:
    page = fed_statement(
        "A & B", "June 12, 2024", "One <b>bold</b> &lt;tag&gt; 3 < 4 &amp; 5.", "Two<br>lines"
    ).decode()
    assert read_statement(page.encode(), "", FED).text == "One bold <tag> 3 < 4 & 5.\nTwo\nlines"
