"""How far each source and publisher is believed, from what became of its items; and which sources are new here.

Belief is the mean of a Beta distribution (Jøsang and Ismail, "The beta reputation system", 2002): a prior by the kind
of source, then what others confirmed or contradicted. It is lowered by the share of items that were held back, recently
and over weeks, and shifted a little by how prices followed. All evidence decays; belief falls fast and rises slowly.

A lie that is well written and published once looks like any other headline; only its source gives it away. So a voice
is on probation until it has been active for days, while others are established. Voices active before any was
established are the run's own feeds, and none of them is new; nor is a proven publisher.
"""

from collections import OrderedDict
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from htfi.domain.news import ScreeningFinding
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.thousandths import rounded

NS_PER_HOUR = 3_600_000_000_000
_MAX_STEPS = 10_000


def decayed(kept: float, steps: int) -> float:
    """What is left after so many steps, each of which keeps the fraction `kept`; by multiplication alone, so that every
    machine has the same bits.
    """
    left, steps = 1.0, min(steps, _MAX_STEPS)
    while steps > 0:
        if steps & 1:
            left *= kept
        kept *= kept
        steps >>= 1
    return left


_LONG_HOURLY_DECAY = 0.9990377588  # an hour: half in 30 days
_SHORT_HOURLY_DECAY = 0.8908987181  # an hour: half in 6 hours
_MAX_EVIDENCE = 200.0
_HALVING_SHARE = 0.1  # share of items held back that halves belief
_FEW_WEEKS, _FEW_HOURS = 20.0, 4.0  # items added as if passed: one held back among none is not a share of 1
_PRICE_PRIOR = 10.0  # price moves added as agreeing, and as disagreeing
_MAX_PRICE_LOSS, _MAX_PRICE_GAIN = 0.2, 0.1  # by prices
_KNOWN_ITEMS, _KNOWN_HOURS, _UNTROUBLED = 20.0, 48, 0.9
_NUM_EVICTION_CANDIDATES = 8  # of those longest silent, the one with the least evidence is removed

NEWCOMER_RULE = "newcomer"
NEWCOMER_TRUST = 0.04  # in its items alone
_NEWCOMER_STRENGTH = 0.5  # discounts, and holds nothing back
_PROBATION_NS = 7 * NS_PER_DAY
_MAX_PROBATION_ITEMS = 3


class SourceKind(StrEnum):
    """What a source is; it gives the prior belief in it."""

    OFFICIAL = "official"
    WIRE = "wire"
    PRESS = "press"
    RELEASE = "release"
    UNKNOWN = "unknown"
    SOCIAL = "social"


# mean and weight of the prior
_PRIORS = {
    SourceKind.OFFICIAL: (0.95, 24.0),
    SourceKind.WIRE: (0.90, 24.0),
    SourceKind.PRESS: (0.80, 12.0),
    SourceKind.RELEASE: (0.70, 8.0),
    SourceKind.UNKNOWN: (0.60, 8.0),
    SourceKind.SOCIAL: (0.45, 8.0),
}
KINDS = frozenset(_PRIORS)


class SourceBelief(NamedTuple):
    """`credibility` 0–1 over weeks, with the pieces of `evidence` behind it; `current_credibility` 0–1 includes the
    last hours.

    `known` marks a source with many items over some time, of which none was held back recently: it is not a newcomer.
    """

    credibility: float
    evidence: float
    current_credibility: float
    known: bool = False


class _SourceRecord(msgspec.Struct):
    """Counts that decay over weeks, those `of_late` over hours."""

    kind: SourceKind
    since: int
    hour: int
    good: float = 0.0
    bad: float = 0.0
    agreed: float = 0.0
    missed: float = 0.0
    held: float = 0.0
    passed: float = 0.0
    held_of_late: float = 0.0
    passed_of_late: float = 0.0

    @property
    def evidence(self) -> float:
        return self.good + self.bad + self.agreed + self.missed + self.held


class SourceReputation:
    """Evidence by name, in bounded number. `now_ns` never falls."""

    def __init__(self, max_sources: int) -> None:
        self._most = max_sources
        self._records: OrderedDict[str, _SourceRecord] = OrderedDict()  # longest silent first
        self._beliefs: dict[
            str, tuple[int, SourceBelief]
        ] = {}  # by name, in an hour, until its record changes

    def belief(self, name: str, now_ns: int, kind: SourceKind = SourceKind.UNKNOWN) -> SourceBelief:
        """The belief in a name; that of its kind if nothing is known."""
        record = self._records.get(name)
        if record is None:
            mean = _PRIORS[kind][0]
            return SourceBelief(mean, 0.0, mean)
        _apply_decay(record, now_ns)
        hour, belief = self._beliefs.get(name, (-1, None))
        if belief is None or hour != record.hour:
            belief = _belief_in(record)
            self._beliefs[name] = record.hour, belief
        return belief

    def record_confirmed(
        self, name: str, weight: float, now_ns: int, kind: SourceKind = SourceKind.UNKNOWN
    ) -> None:
        """An independent source with some credibility reported the same."""
        record = self._record(name, now_ns, kind)
        record.good = min(record.good + weight, _MAX_EVIDENCE)

    def record_contradicted(
        self, name: str, weight: float, now_ns: int, kind: SourceKind = SourceKind.UNKNOWN
    ) -> None:
        """Its item was contradicted or retracted."""
        record = self._record(name, now_ns, kind)
        record.bad = min(record.bad + weight, _MAX_EVIDENCE)

    def record_price_move(self, name: str, weight: float, agreed: bool, now_ns: int) -> None:
        """A price moved after an item: in its direction, or not."""
        record = self._record(name, now_ns, SourceKind.UNKNOWN)
        if agreed:
            record.agreed = min(record.agreed + weight, _MAX_EVIDENCE)
        else:
            record.missed = min(record.missed + weight, _MAX_EVIDENCE)

    def record_passed(self, name: str, now_ns: int, kind: SourceKind = SourceKind.UNKNOWN) -> None:
        """One of its items passed."""
        record = self._record(name, now_ns, kind)
        record.passed += 1.0
        record.passed_of_late += 1.0

    def record_held_back(
        self, name: str, weight: float, now_ns: int, kind: SourceKind = SourceKind.UNKNOWN
    ) -> None:
        """One of its items was quarantined, by its own fault or, with less weight, by another's."""
        record = self._record(name, now_ns, kind)
        record.held += weight
        record.held_of_late += weight

    def record_admitted(self, name: str, now_ns: int) -> None:
        """A person admitted an item from quarantine: it had been held back by mistake."""
        record = self._records.get(name)
        if record is not None:
            _apply_decay(record, now_ns)
            self._beliefs.pop(name, None)
            record.held = max(record.held - 1.0, 0.0)
            record.held_of_late = max(record.held_of_late - 1.0, 0.0)

    def _record(self, name: str, now_ns: int, kind: SourceKind) -> _SourceRecord:
        record = self._records.get(name)
        if record is None:
            if len(self._records) >= self._most:
                self._make_space()
            record = self._records[name] = _SourceRecord(kind, now_ns // NS_PER_HOUR, now_ns // NS_PER_HOUR)
            return record
        _apply_decay(record, now_ns)
        self._beliefs.pop(name, None)
        self._records.move_to_end(name)
        return record

    def _make_space(self) -> None:
        """Thousands of new names do not displace what is known of an old one."""
        silent = [name for name, _ in zip(self._records, range(_NUM_EVICTION_CANDIDATES), strict=False)]
        least = min(silent, key=lambda name: self._records[name].evidence)
        del self._records[least]
        self._beliefs.pop(least, None)
        for name in silent:
            if name != least:
                self._records.move_to_end(name)

    def state(self) -> list[list[Any]]:
        return [[name, *msgspec.structs.astuple(record)] for name, record in self._records.items()]

    def restore(self, state: list[list[Any]]) -> None:
        self._records = OrderedDict((name, _SourceRecord(*rest)) for name, *rest in state)
        self._beliefs.clear()


def _belief_in(record: _SourceRecord) -> SourceBelief:
    """The belief that a record gives, as it has decayed."""
    mean, weight = _PRIORS[record.kind]
    borne = (mean * weight + record.good) / (weight + record.good + record.bad)
    prices = (record.agreed + _PRICE_PRIOR) / (record.agreed + record.missed + 2.0 * _PRICE_PRIOR) - 0.5
    borne = min(max(borne + min(max(prices, -_MAX_PRICE_LOSS), _MAX_PRICE_GAIN), 0.0), 1.0)
    over_weeks = _held_back_factor(record.held, record.passed, _FEW_WEEKS)
    of_late = _held_back_factor(record.held_of_late, record.passed_of_late, _FEW_HOURS)
    return SourceBelief(
        credibility=rounded(borne * over_weeks),
        evidence=rounded(record.evidence),
        current_credibility=rounded(borne * min(over_weeks, of_late)),
        known=record.passed >= _KNOWN_ITEMS
        and record.hour - record.since >= _KNOWN_HOURS
        and min(over_weeks, of_late) > _UNTROUBLED,
    )


def _held_back_factor(held: float, passed: float, few: float) -> float:
    share = held / (held + passed + few)
    return 1.0 - share / (share + _HALVING_SHARE)


def _apply_decay(record: _SourceRecord, now_ns: int) -> None:
    hours = now_ns // NS_PER_HOUR - record.hour
    if hours <= 0:
        return
    record.hour += hours
    weeks, late = decayed(_LONG_HOURLY_DECAY, hours), decayed(_SHORT_HOURLY_DECAY, hours)
    record.good *= weeks
    record.bad *= weeks
    record.agreed *= weeks
    record.missed *= weeks
    record.held *= weeks
    record.passed *= weeks
    record.held_of_late *= late
    record.passed_of_late *= late


class _NewVoice(msgspec.Struct):
    first_ns: int
    num: int = 0


class NewcomerRegister:
    """Voices by how long they have been active, in bounded number: a flood of new ones displaces only new ones."""

    def __init__(self, max_voices: int) -> None:
        self._most = max_voices
        self._known: OrderedDict[str, None] = OrderedDict()  # longest silent first
        self._new: OrderedDict[str, _NewVoice] = OrderedDict()  # likewise

    def judge(self, voice: str, now_ns: int) -> ScreeningFinding | None:
        """Record that a voice is active at an instant; a finding if it is new here."""
        if voice in self._known:
            self._known.move_to_end(voice)
            return None
        voice_record = self._new.get(voice)
        if voice_record is None:
            voice_record = self._new[voice] = _NewVoice(now_ns)
            if len(self._new) > self._most:
                self._new.popitem(last=False)
        self._new.move_to_end(voice)
        voice_record.num += 1
        if now_ns - voice_record.first_ns >= _PROBATION_NS and voice_record.num > _MAX_PROBATION_ITEMS:
            self._admit(voice)
            return None
        if not self._known:
            return None
        days = max(now_ns - voice_record.first_ns, 0) // NS_PER_DAY
        since = f"first seen {days} days ago" if days else "first seen today"
        return ScreeningFinding(
            NEWCOMER_RULE,
            _NEWCOMER_STRENGTH,
            f"its source is new here, {since}, so it counts for little alone",
        )

    def is_new(self, voice: str) -> bool:
        """Whether others are established and this voice is not."""
        return bool(self._known) and voice not in self._known

    def _admit(self, voice: str) -> None:
        """Establish a voice; the first one ends the initial period, in which none is new."""
        found = [*self._new, voice] if not self._known else [voice]
        for name in dict.fromkeys(found):
            self._new.pop(name, None)
            self._known[name] = None
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def state(self) -> dict[str, Any]:
        return {
            "known": list(self._known),
            "new": [[name, voice.first_ns, voice.num] for name, voice in self._new.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._known = OrderedDict.fromkeys(state["known"])
        self._new = OrderedDict((name, _NewVoice(first_ns, num)) for name, first_ns, num in state["new"])
