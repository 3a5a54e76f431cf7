"""Compares each document of a central bank with the last one of its series, and keeps what changed for a while."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from htfi.domain.events import News
from htfi.narrative.facts.statements.comparison import ChangeKind, StatementComparison, describe_comparison
from htfi.narrative.facts.statements.store import (
    DocumentKind,
    StatementStore,
    StoredDocument,
    document_series,
)

MAX_CHANGES = 60  # sentences that came, went or changed, and are kept with their words
MAX_COMPARED = 64
_NONE = msgspec.msgpack.encode(())


class ComparedDocument(msgspec.Struct, frozen=True):
    """Both items, when each was known, and what changed; of sentences that stayed the number alone is kept."""

    item_id: str
    before_id: str
    at_ns: int
    before_at_ns: int
    source: str
    headline: str
    kind: DocumentKind
    comparison: StatementComparison

    @property
    def lines(self) -> tuple[str, ...]:
        """The comparison in words: action, vote, number of sentences that changed."""
        return tuple(describe_comparison(self.comparison))


class ComparedDocuments:
    """The last document of each series, and the newest `MAX_COMPARED` comparisons by the new document's item."""

    def __init__(self) -> None:
        self._last = StatementStore()
        self._found: OrderedDict[str, ComparedDocument] = OrderedDict()

    def add(self, item: News, *, is_official: bool) -> ComparedDocument | None:
        """Take in an item; what changed, where it is a bank's own document that follows another."""
        series = document_series(item.headline, item.body, is_official=is_official) if item.body else None
        if series is None:
            return None
        before = self._last.last(series)
        found = self._last.compare(series, StoredDocument(item.id, item.available_at_ns, item.body))
        if found is None or before is None:
            return None
        compared = self._found[item.id] = ComparedDocument(
            item.id,
            before.item_id,
            item.available_at_ns,
            before.at_ns,
            item.source,
            item.headline,
            series.kind,
            _shortened(found),
        )
        if len(self._found) > MAX_COMPARED:
            self._found.popitem(last=False)
        return compared

    def get(self, item_id: str) -> ComparedDocument | None:
        return self._found.get(item_id)

    def newest(self) -> list[ComparedDocument]:
        """All that are kept, oldest first."""
        return list(self._found.values())

    def forget(self, item_id: str) -> None:
        """Remove a document whose item was withdrawn: nothing is compared with it."""
        self._last.forget(item_id)
        self._found.pop(item_id, None)

    def state(self) -> dict[str, Any]:
        """Empty where there was no document."""
        documents = self._last.state()
        found = {"compared": msgspec.msgpack.encode(self.newest())} if self._found else {}
        return {**({"statements": documents} if documents else {}), **found}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._last.restore(state.get("statements", []))
        found = msgspec.msgpack.decode(state.get("compared", _NONE), type=list[ComparedDocument])
        self._found = OrderedDict((one.item_id, one) for one in found)


def _shortened(found: StatementComparison) -> StatementComparison:
    """Without the words of sentences that stayed where they were, and of changes beyond `MAX_CHANGES`."""
    num_kept = 0
    changes = list(found.changes)
    for place, change in enumerate(changes):
        is_kept = change.kind is not ChangeKind.SAME or change.is_moved
        num_kept += is_kept
        if not is_kept or num_kept > MAX_CHANGES:
            changes[place] = replace(change, old="", new="", runs=())
    return replace(found, changes=tuple(changes))
