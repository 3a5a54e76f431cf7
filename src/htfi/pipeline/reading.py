"""Has the news of a moment read, once for as long as they stay the same. `Loop.decide` calls it before it forecasts.

A symbol whose news did not change keeps its view, which fades with its half-life; so a model reads a headline
once, not at every bar. Views are part of the run's state: what was read before a crash is not read again.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from htfi.domain.decision import Plan, Rung, View
from htfi.narrative.ports import Reader
from htfi.narrative.question import Question


class Readings:
    """The latest view per series, in bounded number, by what was read and by whom."""

    def __init__(self, readers: Mapping[Rung, Reader], max_series: int) -> None:
        self._readers = readers
        self._max_series = max_series
        self._views: OrderedDict[str, tuple[str, View]] = OrderedDict()

    @property
    def rungs(self) -> frozenset[Rung]:
        """The rungs of the ladder that have a reader."""
        return frozenset(self._readers)

    @property
    def models(self) -> dict[str, str]:
        """The readers by rung, for the record of a decision."""
        return {f"reader.{rung.value}": reader.version for rung, reader in self._readers.items()}

    def read(self, asked: Sequence[tuple[str, Question, Plan]]) -> list[View | None]:
        """The view for each (series, question, plan); None where there is no news. Rungs are asked in batches.

        Raises: DependencyUnavailable.
        """
        views: list[View | None] = [None] * len(asked)
        unread: dict[Rung, list[int]] = {}
        for place, (series, question, plan) in enumerate(asked):
            if not question.items:
                continue
            kept = self._views.get(series)
            if kept is not None and kept[0] == self._key(question, plan.rung):
                self._views.move_to_end(series)
                views[place] = kept[1]
            else:
                unread.setdefault(plan.rung, []).append(place)
        for rung, places in unread.items():
            questions = [asked[place][1] for place in places]
            found = self._readers[rung].read(questions, asked[places[0]][2].deadline_ms)
            for place, view in zip(places, found, strict=True):
                views[place] = view
                self._keep(asked[place][0], self._key(asked[place][1], rung), view)
        return views

    def _key(self, question: Question, rung: Rung) -> str:
        return "\n".join([self._readers[rung].version, *(item.id for item in question.items)])

    def _keep(self, series: str, key: str, view: View) -> None:
        self._views[series] = (key, view)
        self._views.move_to_end(series)
        if len(self._views) > self._max_series:
            self._views.popitem(last=False)

    def state(self) -> dict[str, Any]:
        return {
            "views": [
                {"series": series, "key": key, "view": msgspec.to_builtins(view)}
                for series, (key, view) in self._views.items()
            ]
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._views = OrderedDict(
            (kept["series"], (kept["key"], msgspec.convert(kept["view"], View))) for kept in state["views"]
        )
