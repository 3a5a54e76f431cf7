"""Keeps the last document of each central bank, in bounded number and size, and compares each new one with it."""

import re
from collections import OrderedDict
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from htfi.narrative.facts.policy.banks import bank_named
from htfi.narrative.facts.policy.decisions import find_policy_action
from htfi.narrative.facts.statements.alignment import Encode
from htfi.narrative.facts.statements.comparison import Stances, StatementComparison, compare_statements
from htfi.narrative.patterns import Patterns

MAX_DOCUMENTS = 64
MAX_DOCUMENT_CHARS = 60_000
_MIN_STATEMENT_CHARS = 200
_DATA = Patterns("htfi.narrative.facts.statements", "patterns.toml", "documents")
_TITLE = _DATA.compiled("title", re.IGNORECASE)
_MINUTES = _DATA.compiled("minutes")
_SPEAKER = _DATA.compiled("speaker")
_REPORTER, _OWN_WORDS = _DATA.compiled("reporter"), _DATA.compiled("own_words")


class DocumentKind(StrEnum):
    """What a central bank publishes."""

    STATEMENT = "statement"
    MINUTES = "minutes"
    SPEECH = "speech"


class DocumentSeries(NamedTuple):
    """Documents that follow each other: of one bank, of one kind, speeches of one speaker."""

    bank: str
    kind: DocumentKind
    speaker: str = ""


class StoredDocument(msgspec.Struct, frozen=True):
    """The last document of a series: its item, when it was known, its text."""

    item_id: str
    at_ns: int
    text: str


def document_series(
    headline: str, body: str, bank: str = "", *, is_official: bool = False
) -> DocumentSeries | None:
    """Which series a text continues; None for a text that is not a bank's own document.

    From an official source its title or decision is enough; another's item must have a document's title and state a
    decision in the bank's own words, not a reporter's.
    """
    if not is_official and _TITLE.search(headline) is None:
        return None
    bank = bank or bank_named(headline) or bank_named(body)
    if not bank or len(body) < _MIN_STATEMENT_CHARS:
        return None
    speaker = _SPEAKER.search(headline)
    if speaker is not None:
        name = " ".join((speaker["name"] or speaker["other"]).split())
        return DocumentSeries(bank, DocumentKind.SPEECH, name.casefold()) if is_official else None
    lower = body.lower()
    is_own = is_official or (_OWN_WORDS.search(lower) is not None and _REPORTER.search(lower) is None)
    if not is_own:
        return None
    if _MINUTES.search(headline.lower()) or _MINUTES.search(lower[:200]):
        return DocumentSeries(bank, DocumentKind.MINUTES)
    decided = find_policy_action("", body, bank)
    return DocumentSeries(bank, DocumentKind.STATEMENT) if decided is not None else None


class StatementStore:
    """The last document of each series; the one longest without a new document makes room."""

    def __init__(self) -> None:
        self._documents: OrderedDict[DocumentSeries, StoredDocument] = OrderedDict()

    def last(self, series: DocumentSeries) -> StoredDocument | None:
        return self._documents.get(series)

    def compare(
        self,
        series: DocumentSeries,
        document: StoredDocument,
        *,
        stances: Stances | None = None,
        encode: Encode | None = None,
    ) -> StatementComparison | None:
        """What changed since the last document of the series; the new one takes its place.

        None for the first of a series, for one that repeats the last, and for one that was known before it.
        """
        document = msgspec.structs.replace(document, text=document.text[:MAX_DOCUMENT_CHARS])
        last = self._documents.get(series)
        if last is not None and (document.at_ns < last.at_ns or document.text == last.text):
            return None
        self._documents[series] = document
        self._documents.move_to_end(series)
        if len(self._documents) > MAX_DOCUMENTS:
            self._documents.popitem(last=False)
        if last is None:
            return None
        return compare_statements(last.text, document.text, bank=series.bank, stances=stances, encode=encode)

    def forget(self, item_id: str) -> None:
        """Remove a document whose item was withdrawn: nothing is compared with it."""
        for series in [series for series, one in self._documents.items() if one.item_id == item_id]:
            del self._documents[series]

    def state(self) -> list[Any]:
        return [[list(series), msgspec.to_builtins(one)] for series, one in self._documents.items()]

    def restore(self, state: list[tuple[tuple[str, str, str], Mapping[str, Any]]]) -> None:
        self._documents = OrderedDict(
            (DocumentSeries(bank, DocumentKind(kind), speaker), msgspec.convert(one, StoredDocument))
            for (bank, kind, speaker), one in state
        )
