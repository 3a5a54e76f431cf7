"""Entries of decisions from numbers alone, all of one instant at once: for each the bytes of `entry.encode_entry`.

What the decisions share is packed here, once; `rows` writes each from the columns. `pipeline.numeric` calls it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType

from htfi.domain.decision import (
    Decision,
    DecisionInputs,
    FidelityPlan,
    KnownEvents,
    PolicyOutcome,
    PolicyVerdict,
    Regime,
)
from htfi.domain.governance import GovernanceFacts
from htfi.market.regime import LEVELS
from htfi.narrative.rationale.choice import NUM_CHOICES, first_sentences
from htfi.narrative.rationale.drivers import MAX_DRIVERS
from htfi.narrative.rationale.phrasing import Phrasing
from htfi.narrative.rationale.versions import phrasing_of
from htfi.pipeline.record.entry import (
    ENCODER,
    PACKED_APART,
    encode_entry,
    packed_models,
)
from htfi.pipeline.record.fields import field_place, packer_of
from htfi.pipeline.record.forecast import packed_levels
from htfi.pipeline.record.packing import Pack
from htfi.pipeline.record.plain import Plain, TextPlaces
from htfi.pipeline.record.rows import EntryParts, JudgedPart, RowColumns, encode_rows, template_number
from htfi.pipeline.record.wording import SLOT_PLACES, template_places
from htfi.pipeline.record.words import VERSION

_INPUTS, _PLAN = packer_of(DecisionInputs), packer_of(FidelityPlan)
_VERDICT, _GOVERNANCE, _EVENTS = packer_of(PolicyVerdict), packer_of(GovernanceFacts), packer_of(KnownEvents)
_VERDICT_PLACE, _GOVERNANCE_PLACE, _EVENTS_PLACE = (
    field_place(Decision, name, PACKED_APART) for name in ("verdict", "governance", "known_events")
)
_NIL = ENCODER.encode(None)
_NUM_PARTS, _NUM_FORECAST_PARTS = 6, 10
_REGIMES = [ENCODER.encode(tuple(Regime).index(level)) for level in LEVELS]
_PREVIOUS_WIDTH = ENCODER.encode(SLOT_PLACES["previous_width"])


class SharedFacts(NamedTuple):
    """What all decisions of an instant have in common; `plans` by the level of a series' regime."""

    as_of_ns: int
    inputs: DecisionInputs
    settings_digest: str
    models: Mapping[str, str]
    plans: tuple[FidelityPlan, ...]


class Judgement(NamedTuple):
    """What policy and governance say of a decision, and what events make of its band."""

    verdict: PolicyVerdict
    governance: GovernanceFacts | UnsetType = UNSET
    known_events: KnownEvents | UnsetType = UNSET


class JudgedRows(NamedTuple):
    """The judgement of most decisions of an instant, and of the others by their row."""

    usual: Judgement
    others: Mapping[int, Judgement]

    def at(self, row: int) -> Judgement:
        return self.others.get(row, self.usual)


class RecordedAxes(NamedTuple):
    """Experts, horizons and levels of an instant's forecasts."""

    names: tuple[str, ...]
    horizons: tuple[int, ...]
    levels: tuple[float, ...]


def encode_numeric(
    shared: SharedFacts,
    axes: RecordedAxes,
    features: tuple[str, ...],
    judged: JudgedRows,
    columns: RowColumns,
    decision_at: Callable[[int], Decision],
) -> list[bytes]:
    """The entries of n decisions. `decision_at` is asked for one that has to be packed by itself.

    Raises: IntegrityError where a number is not finite.
    """
    parts = _parts(shared, axes, features, judged)
    rows: Sequence[bytes | None] = (
        [None] * len(columns.bars) if parts is None else encode_rows(parts, columns)
    )
    return [
        encode_entry(decision_at(row)) if entry is None else entry  # said by the name of the decision
        for row, entry in enumerate(rows)
    ]


class _LastingParts(NamedTuple):
    """What the entries of a run share, packed: `EntryParts` without what each instant has of its own."""

    models: bytes
    known: dict[str, int]
    by_level: Sequence[bytes]  # digest of the settings, plan, regime
    features: Sequence[bytes]
    forecast: bytes
    texts: frozenset[str] | None  # that are spelled; None where one stands twice


@lru_cache(maxsize=64)
def _lasting_parts(
    named: tuple[tuple[str, str], ...],
    settings_digest: str,
    plans: tuple[FidelityPlan, ...],
    axes: RecordedAxes,
    features: tuple[str, ...],
) -> _LastingParts:
    """The same in most instants of a run. `named` are its models."""
    models, known = packed_models(named)
    shares = _SpelledOnce(known)
    digest = shares.pack(_pack_text, settings_digest)
    packed_plans = [shares.pack(_PLAN.pack, plan) for plan in plans]
    forecast = _array_head(_NUM_FORECAST_PARTS) + ENCODER.encode(list(axes.horizons))
    forecast += ENCODER.encode(packed_levels(axes.levels)) + shares.pack(_pack_texts, axes.names)
    names = [shares.pack(_pack_text, name) for name in features]
    return _LastingParts(
        models=_array_head(_NUM_PARTS) + ENCODER.encode(VERSION) + ENCODER.encode(models),
        known=known,
        by_level=[digest + plan + regime for plan, regime in zip(packed_plans, _REGIMES, strict=True)],
        features=names,
        forecast=forecast,
        texts=shares.texts(),
    )


def _parts(
    shared: SharedFacts, axes: RecordedAxes, features: tuple[str, ...], judged: JudgedRows
) -> EntryParts | None:
    """What the entries of an instant share; None where a text stands twice in each of them."""
    named = tuple(shared.models.items())
    lasting = _lasting_parts(named, shared.settings_digest, shared.plans, axes, features)
    own = _SpelledOnce(lasting.known)
    inputs = own.pack(_INPUTS.pack, shared.inputs)
    spelled = own.texts()
    if lasting.texts is None or spelled is None or spelled & lasting.texts:
        return None
    texts = lasting.texts | spelled
    usual = _judged_rows({0: judged.usual}, named, texts)[0]
    if usual is None:
        return None
    return EntryParts(
        models=lasting.models,
        instant=ENCODER.encode(shared.as_of_ns),
        by_level=[inputs + rest for rest in lasting.by_level],
        features=lasting.features,
        forecast=lasting.forecast,
        templates=_templates(phrasing_of(shared.models)),
        previous_width=_PREVIOUS_WIDTH,
        known=lasting.known,
        texts=texts,
        usual=usual,
        judged=_judged_rows(judged.others, named, texts),
    )


def _judged_rows(
    judged: Mapping[int, Judgement], named: tuple[tuple[str, str], ...], texts: frozenset[str]
) -> dict[int, JudgedPart | None]:
    """By row; None where one of its texts stands elsewhere in the entry too."""
    found: dict[int, JudgedPart | None] = {}
    for row, one in judged.items():
        part = _judged(
            named, one.verdict.outcome, tuple(one.verdict.reasons), one.governance, one.known_events
        )
        found[row] = None if part is None or part.texts & texts else part
    return found


@lru_cache(maxsize=256)  # many are judged alike
def _judged(
    named: tuple[tuple[str, str], ...],
    outcome: PolicyOutcome,
    reasons: tuple[str, ...],
    governance: GovernanceFacts | UnsetType,
    known_events: KnownEvents | UnsetType,
) -> JudgedPart | None:
    """What policy, governance and a calendar say of a decision, packed; None where one of its texts stands in it
    twice. What a decision on numbers alone does not have is nil.
    """
    own = _SpelledOnce(packed_models(named)[1])
    num_fields, fields = _VERDICT_PLACE + 1, own.pack(_VERDICT.pack, PolicyVerdict(outcome, list(reasons)))
    if governance is not UNSET:
        fields += _NIL * (_GOVERNANCE_PLACE - num_fields) + own.pack(_GOVERNANCE.pack, governance)
        num_fields = _GOVERNANCE_PLACE + 1
    if known_events is not UNSET:
        fields += _NIL * (_EVENTS_PLACE - num_fields) + own.pack(_EVENTS.pack, known_events)
        num_fields = _EVENTS_PLACE + 1
    spelled = own.texts()
    return None if spelled is None else JudgedPart(_array_head(num_fields), fields, spelled)


class _SpelledOnce:
    """Packs values of an entry as if no text stood in it twice: each text that is not known is then spelled."""

    def __init__(self, known: dict[str, int]) -> None:
        self._known = known
        self._texts: list[str] = []
        self._is_once = True

    def pack(self, pack: Pack, value: Any) -> bytes:
        texts, later = TextPlaces(self._known), TextPlaces(self._known)
        later.spelled[
            "\0"
        ] = -1  # as if a text came before: what refers to one of the value's own comes out otherwise
        packed = pack(value, texts)
        self._is_once = self._is_once and pack(value, later) == packed
        self._texts += texts.spelled
        return ENCODER.encode(packed)

    def texts(self) -> frozenset[str] | None:
        """The texts that were spelled; None where one stands twice."""
        found = frozenset(self._texts)
        return found if self._is_once and len(found) == len(self._texts) else None


def _pack_text(text: str, texts: TextPlaces) -> Plain:
    return texts.pack(text)


def _pack_texts(names: Sequence[str], texts: TextPlaces) -> Plain:
    return [texts.pack(name) for name in names]


def _array_head(num: int) -> bytes:
    """What an array of so many values begins with, as MessagePack."""
    return bytes([0x90 | num]) if num < 16 else b"\xdc" + num.to_bytes(2, "big")


@cache
def _templates(phrasing: Phrasing) -> list[bytes]:
    """The places of the sentences of each `template_number`."""
    found: dict[int, bytes] = {}
    for choice in range(NUM_CHOICES):
        for num_drivers in range(-1, MAX_DRIVERS + 1):
            for is_led in (False, True):
                places = template_places(first_sentences(choice, num_drivers, is_led), phrasing)
                found[template_number(choice, num_drivers, is_led)] = ENCODER.encode(list(places or ()))
    return [found[number] for number in range(len(found))]
