"""How far each source and publisher is believed, from what its items came to. The sanitiser teaches and asks it.

Belief is the mean of a Beta distribution (Jøsang and Ismail, "The beta reputation system", 2002): a prior by the kind
of source, then evidence that fades: borne out by others and by prices, contradicted, taken back, held back. Evidence
against weighs more than evidence for, so that a name is slow to gain and quick to lose.
"""

from collections import OrderedDict
from typing import Any, NamedTuple

import msgspec

from htfi.narrative.sanitising.fading import NS_PER_HOUR, faded

_BELIEF_KEPT = 0.9990377588  # an hour: half in 30 days
_TROUBLE_KEPT = 0.8908987181  # an hour: half in 6 hours
_MOST_EVIDENCE = 200.0
_MANY_TOLD = 8.0  # items let through in the last hours that halve what one held back counts
_MOST_FORGIVEN = 4.0
_PEERS = 8  # of those longest silent, the one with the least evidence makes room

# mean and weight of what is believed before there is evidence
_PRIORS = {
    "official": (0.95, 24.0),
    "wire": (0.90, 24.0),
    "press": (0.80, 12.0),
    "release": (0.70, 8.0),
    "unknown": (0.60, 8.0),
    "social": (0.45, 8.0),
}
KINDS = frozenset(_PRIORS)


class Belief(NamedTuple):
    """`credibility` 0–1 with the number of pieces of evidence behind it, after fading; `trouble` of late."""

    credibility: float
    evidence: float
    trouble: float

    @property
    def standing(self) -> float:
        """Credibility, less for the items held back in the last hours among those that it told."""
        return self.credibility / (1.0 + self.trouble)


class _Record(msgspec.Struct):
    kind: str
    good: float = 0.0
    bad: float = 0.0
    trouble: float = 0.0
    told: float = 0.0
    hour: int = 0


class Sources:
    """Evidence by name, in bounded number. `now_ns` never falls."""

    def __init__(self, max_sources: int) -> None:
        self._most = max_sources
        self._records: OrderedDict[str, _Record] = OrderedDict()  # longest silent first

    def belief(self, name: str, now_ns: int, kind: str = "unknown") -> Belief:
        """What is believed of a name; that of its kind where nothing is known."""
        record = self._records.get(name)
        if record is None:
            return Belief(_PRIORS[kind][0], 0.0, 0.0)
        _fade(record, now_ns)
        mean, weight = _PRIORS[record.kind]
        evidence = record.good + record.bad
        credibility = (mean * weight + record.good) / (weight + evidence)
        trouble = record.trouble / min(1.0 + record.told / _MANY_TOLD, _MOST_FORGIVEN)
        return Belief(round(credibility, 3), round(evidence, 3), round(trouble, 3))

    def told(self, name: str, now_ns: int, kind: str = "unknown") -> None:
        """An item of it was let through: one held back among many tells less of it."""
        self._record(name, now_ns, kind).told += 1.0

    def borne_out(self, name: str, weight: float, now_ns: int, kind: str = "unknown") -> None:
        """Something independent of it said the same."""
        record = self._record(name, now_ns, kind)
        record.good = min(record.good + weight, _MOST_EVIDENCE)

    def belied(self, name: str, weight: float, now_ns: int, kind: str = "unknown") -> None:
        """What it said was contradicted, taken back or not followed."""
        record = self._record(name, now_ns, kind)
        record.bad = min(record.bad + weight, _MOST_EVIDENCE)

    def held_back(self, name: str, weight: float, now_ns: int, kind: str = "unknown") -> None:
        """An item of it went to quarantine."""
        record = self._record(name, now_ns, kind)
        record.bad = min(record.bad + weight, _MOST_EVIDENCE)
        record.trouble = min(record.trouble + weight, _MOST_EVIDENCE)

    def _record(self, name: str, now_ns: int, kind: str) -> _Record:
        record = self._records.get(name)
        if record is None:
            if len(self._records) >= self._most:
                self._make_room()
            record = self._records[name] = _Record(kind, hour=now_ns // NS_PER_HOUR)
            return record
        _fade(record, now_ns)
        self._records.move_to_end(name)
        return record

    def _make_room(self) -> None:
        """Thousands of new names do not wash out what is known of an old one."""
        silent = [name for name, _ in zip(self._records, range(_PEERS), strict=False)]
        least = min(silent, key=lambda name: self._records[name].good + self._records[name].bad)
        del self._records[least]
        for name in silent:
            if name != least:
                self._records.move_to_end(name)

    def state(self) -> list[list[Any]]:
        return [
            [name, record.kind, record.good, record.bad, record.trouble, record.told, record.hour]
            for name, record in self._records.items()
        ]

    def restore(self, state: list[list[Any]]) -> None:
        self._records = OrderedDict((name, _Record(*rest)) for name, *rest in state)


def _fade(record: _Record, now_ns: int) -> None:
    hours = now_ns // NS_PER_HOUR - record.hour
    if hours <= 0:
        return
    record.hour += hours
    if record.good or record.bad or record.told or record.trouble:
        kept = faded(_BELIEF_KEPT, hours)
        record.good *= kept
        record.bad *= kept
        kept = faded(_TROUBLE_KEPT, hours)
        record.trouble *= kept
        record.told *= kept
