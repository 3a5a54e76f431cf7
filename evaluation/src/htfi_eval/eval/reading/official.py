"""How many official documents the sanitiser holds back, and how many forged ones it believes.

The documents are the staged archive of one central bank: statements, minutes and speeches. Each is screened as a
headline only, as a body only, and as both; once from the bank's own feed, and once from a feed of which nothing is
known. No document is compared with another: a sanitiser of its own screens each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from htfi.domain.events import News
from htfi.domain.news import Screening
from htfi.domain.time import to_ns
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi_eval.eval.prices import read_rows

OFFICIAL_FEED, UNKNOWN_FEED = "federalreserve", "news"
_COMMUNICATIONS = "central_bank/fomc_communications_1994_2024.parquet"
_SPEECHES = "central_bank/fed_speeches_1996_2022.parquet"


@dataclass(frozen=True, slots=True)
class OfficialDocument:
    """One document: its title, its text, its kind ('statement', 'minute', 'speech' …) and its date."""

    title: str
    text: str
    kind: str
    released: date


@dataclass(frozen=True, slots=True)
class HeldDocument:
    """A document that was held back: from which feed, in which form, by which rules."""

    document: OfficialDocument
    feed: str
    form: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OfficialScreening:
    """Screenings of all documents in all forms, from the bank's feed and from an unknown one."""

    num_documents: int
    num_screened: int
    held: tuple[HeldDocument, ...]
    num_discounted: int

    @property
    def held_share(self) -> float:
        """the figure official_held of reading: the share of screenings, of both feeds, that held a document back."""
        return len(self.held) / max(self.num_screened, 1)

    def num_held(self, feed: str) -> int:
        return sum(one.feed == feed for one in self.held)


def evaluate_official(data: Path) -> OfficialScreening | None:
    """Screen every document of the data folder; None where the archive is missing."""
    if not (data / _COMMUNICATIONS).exists() or not (data / _SPEECHES).exists():
        return None
    documents = list(official_documents(data))
    held: list[HeldDocument] = []
    num_screened = num_discounted = 0
    for document in documents:
        for feed in (OFFICIAL_FEED, UNKNOWN_FEED):
            for form, headline, body in _forms(document):
                at_ns = to_ns(
                    datetime(
                        document.released.year, document.released.month, document.released.day, 20, tzinfo=UTC
                    )
                )
                screened = Sanitiser().screen(News(at_ns, at_ns, feed, 1, "document", headline, body=body))
                num_screened += 1
                num_discounted += screened.verdict is Screening.DISCOUNT
                if screened.verdict is Screening.QUARANTINE:
                    rules = tuple(sorted({finding.rule for finding in screened.findings}))
                    held.append(HeldDocument(document, feed, form, rules))
    return OfficialScreening(len(documents), num_screened, tuple(held), num_discounted)


def official_documents(data: Path) -> Iterator[OfficialDocument]:
    """The documents of the archive."""
    for kind, text, released in rows_of(data / _COMMUNICATIONS, "type", "text", "release_date"):
        yield OfficialDocument(f"Federal Reserve issues FOMC {kind}", text or "", kind, released)
    for speaker, title, text, given in rows_of(
        data / _SPEECHES, "speaker", "title", "policy_sentences", "date"
    ):
        yield OfficialDocument(f"{speaker}: {title}", text or "", "speech", given)


def rows_of(path: Path, *columns: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a Parquet file, of these columns; days are dates."""
    table = read_rows(path)
    days = {
        name: table[name].astype("datetime64[D]").astype(object)
        for name in columns
        if table[name].dtype.kind == "M"
    }
    return zip(*(days.get(name, table[name]) for name in columns), strict=True)


def _forms(document: OfficialDocument) -> Iterator[tuple[str, str, str]]:
    yield "headline only", document.title, ""
    if document.text:
        yield "body only", document.text, ""
        yield "both", document.title, document.text
