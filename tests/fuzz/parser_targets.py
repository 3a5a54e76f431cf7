"""What must hold of each parser for any bytes at all. Hypothesis and atheris both call these.

A target raises nothing: what it is given is read, or refused in the one way that its caller expects.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from htfi.adapters.feeds.live import message_rows
from htfi.adapters.feeds.rate_limits import fresh_s, retry_after_s
from htfi.adapters.feeds.records import (
    MAX_ROW_BYTES,
    CsvRecords,
    CsvRows,
    JsonRows,
    LineReader,
    WebJsonRows,
    parse_record,
)
from htfi.adapters.feeds.web.edgar import parse_current, parse_submissions
from htfi.adapters.feeds.web.entries import MAX_ENTRIES, MAX_ID_CHARS, BadDocument, WebEntry
from htfi.adapters.feeds.web.history import EntryHistory
from htfi.adapters.feeds.web.page_limits import limit_html
from htfi.adapters.feeds.web.page_rules import candidate_rules
from htfi.adapters.feeds.web.pages import read_list, read_statement
from htfi.adapters.feeds.web.robots import parse_robots
from htfi.adapters.feeds.web.rss import parse_feed
from htfi.domain.events import QuarantinedRow
from htfi.pipeline.intake.quarantine_reasons import MAX_DETAIL_CHARS, MAX_RAW_CHARS, QuarantineReason
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec
from web_documents import (
    accession,
    atom,
    atom_entry,
    boe_list,
    boe_statement,
    current_filings,
    ecb_list,
    ecb_statement,
    fed_list,
    fed_statement,
    filing,
    rss,
    rss_item,
    submissions,
    tombstone,
)

_RULES = candidate_rules("bank.example", {}, "")
_NEWS = SourceSpec(name="s", url="https://feeds.example/x")
_ROWS = SourceSpec(name="s", zone="UTC")
_TICKERS = {320193: ("AAPL",)}
_REASONS = frozenset(reason.value for reason in QuarantineReason)


def feed(data: bytes) -> None:
    try:
        _check_entries(parse_feed(data).entries, len(data))
    except BadDocument as error:
        _check_line(str(error))


def edgar_feed(data: bytes) -> None:
    try:
        _check_entries(parse_current(data, "", _TICKERS).entries, len(data))
    except BadDocument as error:
        _check_line(str(error))


def edgar_submissions(data: bytes) -> None:
    try:
        _check_entries(parse_submissions(data, _TICKERS).entries, len(data))
    except BadDocument as error:
        _check_line(str(error))


def page(data: bytes) -> None:
    listed, rules = read_list(data, "", _RULES)
    statement = read_statement(data, "", rules)
    entries = [WebEntry("", line.title, "", line.link, line.published).with_key() for line in listed]
    body = WebEntry(
        "k", statement.heading, statement.text, "", statement.published, statement.publisher
    ).with_key()
    _check_entries([*entries, body], len(data))
    assert all(0 < len(part) <= 400 for part in statement.hidden)
    tamed = limit_html(data.decode("utf-8", "replace"))
    assert len(tamed) <= 8 * len(data) + 64


def robots(data: bytes) -> None:
    head, _, target = data.partition(b"\n\n")
    rules = parse_robots(head, "A desk desk@example.org")
    rules.allows("/" + target.decode("utf-8", "replace"))
    assert 0.0 <= rules.delay_s <= 60.0


def headers(data: bytes) -> None:
    text = data.decode("latin-1")
    for name in ("retry-after", "cache-control", "expires", "age"):
        told = {"cache-control": "max-age=60", "date": "Mon, 13 May 2024 10:00:00 GMT", name: text}
        assert 0.0 <= retry_after_s(told) <= 86_400.0
        assert 0.0 <= fresh_s(told) <= 86_400.0


def jsonl(data: bytes) -> None:
    _check_rows(_lines(data), JsonRows(), RowParser(_ROWS, "A"), None)


def inbox_rows(data: bytes) -> None:
    """What stands in an inbox, should somebody have written into it."""
    _check_rows(_lines(data), WebJsonRows(), RowParser(_NEWS, ""), 1)
    EntryHistory(
        Path("/nowhere/web.json"), [content for _, content, _ in _lines(data)], 0, "https://feeds.example/x"
    )


def websocket_message(data: bytes) -> None:
    rows = message_rows(data)
    assert sum(len(content) for content, _ in rows) <= len(data)
    _check_rows([(0, content, num_bytes) for content, num_bytes in rows], JsonRows(), RowParser(_NEWS, ""), 1)


def csv(data: bytes) -> None:
    joiner = CsvRecords()
    records = [*joiner.join(_lines(data)), *joiner.finish()]
    rows = CsvRows(["ts", "symbol", "price", "size"], ",")
    _check_rows(records, rows, RowParser(_ROWS, "A"), None)


def _lines(data: bytes) -> list[tuple[int, bytes, int]]:
    left = memoryview(data)

    def read(num_bytes: int) -> bytes:
        nonlocal left
        chunk, left = bytes(left[:num_bytes]), left[num_bytes:]
        return chunk

    lines, found = LineReader(read), []
    while (batch := lines.next(777)) is not None:
        found += batch
    found += lines.finish()
    assert sum(num_bytes + 1 for _, _, num_bytes in found) - len(data) in (0, 1)
    return found


def _check_rows(
    records: Iterable[tuple[int, bytes, int]],
    rows: JsonRows | CsvRows,
    parser: RowParser,
    arrival_ns: int | None,
) -> None:
    for number, record in enumerate(records, 1):
        item = parse_record(rows, parser, record, number, arrival_ns)
        if isinstance(item, QuarantinedRow):
            assert item.reason in _REASONS
            assert len(item.raw) <= MAX_RAW_CHARS
            assert len(item.detail) <= MAX_DETAIL_CHARS
        elif item is not None:
            assert item.row == number
            msgspec.json.encode(item)


def _check_entries(entries: Iterable[WebEntry], num_bytes: int) -> None:
    """Each has a key, can be written down as a row, and holds no more than came."""
    memory = EntryHistory(Path("/nowhere/web.json"), [], 0, "https://feeds.example/x")
    found = list(entries)
    assert len(found) <= MAX_ENTRIES
    for entry in found:
        assert 0 < len(entry.key) <= MAX_ID_CHARS
        assert len(entry.body) <= min(MAX_ROW_BYTES, 8 * num_bytes) + 1000
        row = memory.new_row(entry)
        msgspec.json.encode(
            [row, entry.headline, entry.body, entry.url, entry.published, entry.symbols, entry.refused]
        )
        assert memory.new_row(entry) is None  # said once


def _check_line(text: str) -> None:
    assert 0 < len(text) < 400
    assert "\n" not in text


TARGETS: Mapping[str, Callable[[bytes], None]] = MappingProxyType({
    target.__name__: target
    for target in (
        feed, edgar_feed, edgar_submissions, page, robots, headers, jsonl, inbox_rows, websocket_message, csv,
    )
})  # fmt: skip

_TRADE = b'{"ts":"2024-05-13T10:00:00Z","symbol":"A","price":1.5,"size":3}\n'
SEEDS: Mapping[str, list[bytes]] = MappingProxyType({
    "feed": [
        rss(rss_item(1, more='<category domain="ticker">A</category><source url="x">S</source>'), rss_item(2)),
        atom(atom_entry(1, "A & b"), tombstone(2)),
        b"<!DOCTYPE r [<!ENTITY a 'b'>]><rss><channel><item><title>&a;&nbsp;&#0;</title></item></channel></rss>",
        "<?xml version='1.0' encoding='utf-16'?><rss><item><title>x</title></item></rss>".encode("utf-16"),
    ],
    "edgar_feed": [
        current_filings(filing(1, "8-K/A", "A INC", 320193, items=("2.02",)), filing(2, "8-K", "A", 320193)),
    ],
    "edgar_submissions": [
        submissions([(2, "8-K/A", "2024-05-13T20:00:00.000Z", "2024-05-13", "2.02"), (1, "RW", "2024-05-12", "", "")]),
        accession(1).encode(),
    ],
    "page": [
        fed_list(("6/12/2024", "/s.htm", "Federal Reserve issues FOMC statement")),
        fed_statement("Statement", "June 12, 2024", "One.", more='<p style="display:none">x</p><svg><p></svg>'),
        ecb_list(("2024-06-06", "/s.htm", "Monetary policy decisions")),
        ecb_statement("Monetary policy decisions", "6 June 2024", "One."),
        boe_list(("2024-06-20", "/s.htm", "Bank Rate maintained")),
        boe_statement("Bank Rate maintained", "20 June 2024", "One."),
    ],
    "robots": [b"User-agent: *\nDisallow: /a*b$\nAllow: /a\nCrawl-delay: 3\n\na/b"],
    "headers": [b"120", b"public, max-age=30", b"Mon, 13 May 2024 10:02:00 GMT"],
    "jsonl": [_TRADE * 3, b'{"ts":1,"headline":"x","symbols":["A"],"corrects":"y","retracts":true}\n'],
    "inbox_rows": [
        b'{"refused":"too_long","detail":"d","raw":"r","id":"a","digest":"00"}\n',
        b'{"kind":"news","id":"a~2","key":"a","told":2,"digest":"00ff","headline":"x","facts":{"form":"8-K"}}\n',
    ],
    "websocket_message": [b"[" + _TRADE.strip() + b"," + _TRADE.strip() + b"]", _TRADE * 2],
    "csv": [b'2024-05-13T10:00:00Z,A,1.5,3\n2024-05-13T10:00:00Z,"A ""b""\n c",1.5,3\n'],
})  # fmt: skip
WORDS = (
    b"<![CDATA[", b"]]>",
    b"<!--", b"-->", b"&#x0;", b"&#xD800;", b"&nbsp;", b"&", b"<", b">", b"<item>",
    b"</item>", b"<entry>", b"<title>", b"<a:b xmlns:a='x'>",
    b"<!DOCTYPE x [", b"<!ENTITY a SYSTEM 'file:///etc/passwd'>", b"%a;",
    b"<?xml version='1.0' encoding='", b"utf-7", b"utf-16", b"iso-2022-jp",
    b"shift_jis", b"\xff\xfe", b"\xef\xbb\xbf", b"\x00",
    b"<div>", b"</div>", b"<p", b"<table><tr><td>", b"<select><option>", b"<script>", b"<svg>", b" hidden",
    b"style='display:none'",
    b'"', b"'", b"{", b"}", b"[", b"]", b",", b"\n", b"\r",
    b'"\\ud800"', b"1e999", b"-0", b"NaN", b"null", b"9" * 400, b"\\u0000",
    "\u202e\u200b\U0001f600".encode(),
)  # fmt: skip
