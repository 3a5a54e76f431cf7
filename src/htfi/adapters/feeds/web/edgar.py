"""Parses SEC filings from EDGAR: the Atom feed of current ones, and the JSON of one filer's.

Items of a current report are named as in Form 8-K (17 CFR 249.308).
One filing is one entry, keyed by its accession number, however many filers the feed lists it under. An amendment
(8-K/A) names what it amends where that is known: the filer's last filing of the form with the same report date,
else, for forms filed often, with an item in common.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast
from zoneinfo import ZoneInfo

import msgspec

from htfi.adapters.feeds.web.entries import (
    MAX_ENTRIES,
    BadDocument,
    ParsedDocument,
    WebEntry,
    oldest_first,
    one_line,
    parse_instant,
)
from htfi.adapters.feeds.web.rss import parse_feed
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason

FREQUENT_FORMS = frozenset(
    {"8-K", "6-K", "4", "3", "144", "SC 13D", "SC 13G", "SCHEDULE 13D", "SCHEDULE 13G", "424B2", "FWP"}
)
FORM_8K_ITEMS: Mapping[str, str] = MappingProxyType({
    "1.01": "Entry into a Material Definitive Agreement",
    "1.02": "Termination of a Material Definitive Agreement",
    "1.03": "Bankruptcy or Receivership",
    "1.04": "Mine Safety",
    "1.05": "Material Cybersecurity Incidents",
    "2.01": "Completion of Acquisition or Disposition of Assets",
    "2.02": "Results of Operations and Financial Condition",
    "2.03": "Creation of a Direct Financial Obligation",
    "2.04": "Triggering Events That Accelerate a Direct Financial Obligation",
    "2.05": "Costs Associated with Exit or Disposal Activities",
    "2.06": "Material Impairments",
    "3.01": "Notice of Delisting or Failure to Satisfy a Continued Listing Rule",
    "3.02": "Unregistered Sales of Equity Securities",
    "3.03": "Material Modification to Rights of Security Holders",
    "4.01": "Changes in Registrant's Certifying Accountant",
    "4.02": "Non-Reliance on Previously Issued Financial Statements",
    "5.01": "Changes in Control of Registrant",
    "5.02": "Departure or Election of Directors or Certain Officers",
    "5.03": "Amendments to Articles of Incorporation or Bylaws",
    "5.04": "Temporary Suspension of Trading Under Employee Benefit Plans",
    "5.05": "Amendments to the Code of Ethics",
    "5.06": "Change in Shell Company Status",
    "5.07": "Submission of Matters to a Vote of Security Holders",
    "5.08": "Shareholder Director Nominations",
    "6.01": "ABS Informational and Computational Material",
    "6.02": "Change of Servicer or Trustee",
    "6.03": "Change in Credit Enhancement or Other External Support",
    "6.04": "Failure to Make a Required Distribution",
    "6.05": "Securities Act Updating Disclosure",
    "7.01": "Regulation FD Disclosure",
    "8.01": "Other Events",
    "9.01": "Financial Statements and Exhibits",
})  # fmt: skip


PUBLISHER = "SEC EDGAR"
_NEW_YORK = ZoneInfo("America/New_York")
_TITLE = re.compile(
    r"(?P<form>\S[^()]{0,30}?) - (?P<name>.{1,200}?) \((?P<cik>\d{1,10})\)(?: \((?P<role>[^()]{1,40})\))?\s*$"
)
_ACCESSION = re.compile(r"\d{10}-\d{2}-\d{6}")
_ITEM = re.compile(r"\b[Ii]tem (\d{1,2}\.\d{2})")
_TAG = re.compile(r"<[^<>]{0,200}>")
_ROLES = ("Issuer", "Subject", "Filer", "Filed by", "Reporting")
_MAX_TICKER_BYTES = 16_000_000
_MAX_AMENDMENT_AGE = timedelta(days=100)  # within which a form that is filed often is amended
_WITHDRAWALS = {
    "RW": ("S-1", "S-3", "S-4", "S-11", "F-1", "F-3", "F-4"),
    "AW": ("S-1/A", "S-3/A", "S-4/A", "F-1/A"),
}
_UNINFORMATIVE_ITEMS = frozenset({"9.01"})  # exhibits: nearly every report has them

Tickers = Mapping[int, tuple[str, ...]]


def load_tickers(file: Path) -> Tickers:
    """CIK → tickers of a file like the SEC's `company_tickers.json`. Raises: InvalidInput, DependencyUnavailable."""
    where = f"tickers {file}"
    try:
        if file.stat().st_size > _MAX_TICKER_BYTES:
            raise InvalidInput(f"{where}: larger than {_MAX_TICKER_BYTES} bytes: is it company_tickers.json?")
        document: Any = msgspec.json.decode(file.read_bytes())
    except OSError as error:
        raise DependencyUnavailable(f"{where}: {error.strerror}: check the path and its rights") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{where}: not JSON ({error}): fetch it again") from error
    found: dict[int, list[str]] = {}
    for cik, ticker in _ticker_rows(document):
        tickers = found.setdefault(cik, [])
        if ticker not in tickers:
            tickers.append(ticker)
    if not found:
        raise InvalidInput(f'{where}: no entries such as {{"0": {{"cik_str": 320193, "ticker": "AAPL"}}}}')
    return {cik: tuple(tickers) for cik, tickers in found.items()}


def parse_current(
    body: bytes, charset: str, tickers: Tickers, past: Iterable[WebEntry] = ()
) -> ParsedDocument:
    """Filings of the Atom feed, oldest first; `past` are earlier ones. Raises: BadDocument."""
    feed = parse_feed(body, charset)
    filings: dict[str, list[WebEntry]] = {}
    for entry in feed.entries:
        accession = _ACCESSION.search(entry.key) or _ACCESSION.search(entry.url)
        entry.key = accession[0] if accession else entry.key
        filings.setdefault(entry.key, []).append(entry)
    found = [_entry_of_feed(listed, tickers) for listed in filings.values()]
    return ParsedDocument(_with_amended(found, past), feed.error)


def parse_submissions(body: bytes, tickers: Tickers, past: Iterable[WebEntry] = ()) -> ParsedDocument:
    """Filings of `submissions/CIK##########.json`, oldest first. Raises: BadDocument."""
    try:
        document = msgspec.json.decode(body, type=_Submissions)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDocument(f"not the submissions of a filer in JSON: {error}") from error
    columns = document.filings.recent
    accessions = columns.get("accessionNumber")
    if not isinstance(accessions, list):
        raise BadDocument("JSON, but without filings.recent.accessionNumber")
    num_rows = min(len(cast("list[Any]", accessions)), MAX_ENTRIES)
    rows = [
        {name: _column_value(column, place) for name, column in columns.items()} for place in range(num_rows)
    ]
    rows = _resolve_clock(rows)
    filings = [_entry_of_row(row, document, tickers) for row in rows]
    return ParsedDocument(_with_amended(oldest_first(filings), past))


class _Filings(msgspec.Struct):
    recent: dict[str, Any]


class _Submissions(msgspec.Struct):
    filings: _Filings
    cik: str | int = ""
    name: str = ""
    tickers: list[str | None] = []


def _entry_of_feed(listed: Sequence[WebEntry], tickers: Tickers) -> WebEntry:
    """One filing out of its lines, one for each filer."""
    first, titles = listed[0], [_TITLE.match(entry.headline) for entry in listed]
    ciks = sorted({int(title["cik"]) for title in titles if title})
    named = [title for title in titles if title]
    if not named:
        first.publisher = PUBLISHER
        if first.refused is None:
            first.refused = (
                QuarantineReason.MALFORMED,
                "the title is not of the form 'FORM - NAME (CIK)'",
                first.headline,
            )
        return first
    chief = min(named, key=lambda title: _ROLES.index(title["role"]) if title["role"] in _ROLES else 2)
    form, text = one_line(chief["form"]), one_line(_TAG.sub(" ", first.body))
    items = list(dict.fromkeys(_ITEM.findall(text)))
    return WebEntry(
        key=first.key,
        headline=_headline(chief["name"], form, items),
        body=text,
        url=first.url,
        published=first.published,
        publisher=PUBLISHER,
        symbols=list(dict.fromkeys(symbol for cik in ciks for symbol in tickers.get(cik, ()))),
        facts={"form": form, "ciks": " ".join(map(str, ciks)), "items": " ".join(items)},
        refused=first.refused,
    )


def _entry_of_row(row: Mapping[str, str], document: _Submissions, tickers: Tickers) -> WebEntry:
    cik = int(document.cik) if str(document.cik).isdecimal() and len(str(document.cik)) < 12 else 0
    accession, form = row.get("accessionNumber", ""), one_line(row.get("form", ""))
    own = [ticker for ticker in document.tickers if ticker]
    items = [
        item for item in re.split(r"[,\s]+", row.get("items", "")) if re.fullmatch(r"\d{1,2}\.\d{2}", item)
    ]
    about = [
        row.get("primaryDocDescription", ""),
        "; ".join(f"Item {item}: {FORM_8K_ITEMS[item]}" for item in items if item in FORM_8K_ITEMS),
        f"for {row['reportDate']}" if row.get("reportDate") else "",
    ]
    place = f"{cik}/{accession.replace('-', '')}/{row.get('primaryDocument', '')}"
    entry = WebEntry(
        key=accession,
        headline=_headline(one_line(document.name), form, items) if form else "",
        body=". ".join(one_line(part) for part in about if part),
        url=f"https://www.sec.gov/Archives/edgar/data/{place}",
        published=row.get("acceptanceDateTime") or row.get("filingDate", ""),
        publisher=PUBLISHER,
        symbols=list(dict.fromkeys((*own, *tickers.get(cik, ())))),
        facts={"form": form, "ciks": str(cik), "items": " ".join(items), "report": row.get("reportDate", "")},
    )
    if not _ACCESSION.fullmatch(accession):
        entry.key = ""
        entry.refused = (
            QuarantineReason.MALFORMED,
            "no accession number such as 0000320193-24-000081",
            str(row),
        )
    return entry.with_key()


def _headline(name: str, form: str, items: Sequence[str]) -> str:
    named = "; ".join(
        FORM_8K_ITEMS[item] for item in items if item in FORM_8K_ITEMS and item not in _UNINFORMATIVE_ITEMS
    )
    return f"{name} files {form}" + (f": {named}" if named else "")


def _with_amended(filings: list[WebEntry], past: Iterable[WebEntry]) -> list[WebEntry]:
    """Each amendment or withdrawal with the key of the filing that it concerns, where that is known."""
    before = [entry for entry in past if entry.facts.get("form")]
    for filing in filings:
        form = filing.facts.get("form", "")
        if form.endswith("/A") or form in _WITHDRAWALS:
            filing.amends = _amended_key(filing, before)
            filing.retracts = form in _WITHDRAWALS and bool(filing.amends)
        if form and filing.refused is None:
            before.append(filing)
    return filings


def _amended_key(filing: WebEntry, before: Sequence[WebEntry]) -> str:
    form = filing.facts["form"]
    wanted = _WITHDRAWALS.get(form) or (form, form.removesuffix("/A"))
    ciks, items = set(filing.facts["ciks"].split()), set(filing.facts["items"].split()) - _UNINFORMATIVE_ITEMS
    report, at = filing.facts.get("report", ""), parse_instant(filing.published)
    for earlier in reversed(before):
        facts = earlier.facts
        if facts["form"] not in wanted or earlier.key == filing.key or not ciks & set(facts["ciks"].split()):
            continue
        if report and facts.get("report"):
            if report == facts["report"]:
                return earlier.key
            continue
        often = form.removesuffix("/A") in FREQUENT_FORMS
        then = parse_instant(earlier.published)
        near = at is None or then is None or at - then <= _MAX_AMENDMENT_AGE
        if not often or (near and items & set(facts.get("items", "").split())):
            return earlier.key
    return ""


def _resolve_clock(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """`acceptanceDateTime` ends in Z, and yet for many filers it is New York's clock, in all that they filed.

    EDGAR takes nothing in from 22:00 to 6:00 in New York: where three filings would fall there, it is that clock.
    Source: 64,936 filings compared in github.com/john-friedman/datamule-python/issues/115.
    """
    instants = [parse_instant(row.get("acceptanceDateTime", "")) for row in rows]
    hours = [at.astimezone(_NEW_YORK).hour for at in instants if at is not None]
    if sum(hour < 5 or hour == 23 for hour in hours) < 3:
        return rows
    return [
        {**row, "acceptanceDateTime": _read_as_new_york(at)} if at is not None else row
        for row, at in zip(rows, instants, strict=True)
    ]


def _read_as_new_york(at: datetime) -> str:
    return at.replace(tzinfo=_NEW_YORK).isoformat()


def _column_value(column: Any, place: int) -> str:
    if not isinstance(column, list) or place >= len(cast("list[Any]", column)):
        return ""
    value = cast("list[Any]", column)[place]
    return str(value)[:4096] if isinstance(value, str | int | float) else ""


def _ticker_rows(document: Any) -> Iterable[tuple[int, str]]:
    """Both forms of the SEC: a table of objects, and `fields` with rows of `data`."""
    if not isinstance(document, dict):
        return
    table = cast("dict[str, Any]", document)
    fields, data = table.get("fields"), table.get("data")
    if isinstance(fields, list) and isinstance(data, list):
        names = cast("list[Any]", fields)
        rows: Iterable[Any] = (
            dict(zip(names, cast("list[Any]", row), strict=False))
            for row in cast("list[Any]", data)
            if isinstance(row, list)
        )
    else:
        rows = table.values()
    for row in rows:
        if not isinstance(row, dict):
            continue
        cells = cast("dict[str, Any]", row)
        cik, ticker = str(cells.get("cik_str", cells.get("cik", ""))), cells.get("ticker")
        if cik.isdecimal() and len(cik) <= 10 and isinstance(ticker, str) and 0 < len(ticker) <= 16:
            yield int(cik), ticker
