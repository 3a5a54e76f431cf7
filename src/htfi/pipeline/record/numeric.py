"""Entries of decisions from numbers alone, all of one instant at once: for each the bytes of `entry.encode_entry`.

What the decisions share is packed once, their tables of numbers in one compiled pass. `pipeline.numeric` calls it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from htfi.domain.decision import (
    TICKS_PER_UNIT,
    BarCircumstances,
    Decision,
    DecisionInputs,
    FidelityPlan,
    PolicyVerdict,
    Rationale,
    Regime,
)
from htfi.domain.errors import IntegrityError
from htfi.domain.events import Bar
from htfi.domain.governance import GovernanceFacts
from htfi.forecasting.batch import ForecastBatch
from htfi.narrative.rationale.phrasing import Phrasing
from htfi.narrative.rationale.versions import phrasing_of
from htfi.pipeline.record.entry import (
    ENCODER,
    PACKED_APART,
    VERSION,
    WEIGHT_SCALE,
    encode_entry,
    packed_levels,
    packed_models,
)
from htfi.pipeline.record.fields import field_place, packer_of
from htfi.pipeline.record.plain import Plain, TextPlaces, float_rows, pack_float, pack_floats
from htfi.pipeline.record.ticks import pack_each, pack_scaled_each
from htfi.pipeline.record.wording import SLOT_PLACES, template_places

_INPUTS, _PLAN = packer_of(DecisionInputs), packer_of(FidelityPlan)
_CIRCUMSTANCES, _VERDICT = packer_of(BarCircumstances), packer_of(PolicyVerdict)
_GOVERNANCE = packer_of(GovernanceFacts)
_VERDICT_PLACE, _GOVERNANCE_PLACE = (
    field_place(Decision, name, PACKED_APART) for name in ("verdict", "governance")
)
_ABSENT = (None,) * (_GOVERNANCE_PLACE - _VERDICT_PLACE - 1)  # what a decision on numbers alone does not have
_REGIMES = {regime: place for place, regime in enumerate(Regime)}


class SharedFacts(NamedTuple):
    """What all decisions of an instant have in common."""

    as_of_ns: int
    inputs: DecisionInputs
    settings_digest: str
    models: Mapping[str, str]


class NumericFacts(NamedTuple):
    """What one decision is, beside its forecast and what it shares."""

    bar: Bar
    plan: FidelityPlan
    regime: Regime
    features: dict[str, float]
    circumstances: BarCircumstances
    verdict: PolicyVerdict
    rationale: Rationale  # stated, without words
    governance: GovernanceFacts | UnsetType = UNSET


def encode_numeric(
    shared: SharedFacts,
    rows: Sequence[NumericFacts],
    forecasts: ForecastBatch,
    decision_at: Callable[[int], Decision],
) -> list[bytes]:
    """The entries of n decisions whose forecasts are the rows of a batch, every expert's among them.

    `decision_at` is asked for a decision that has to be packed by itself. Raises: IntegrityError where a number is not
    finite.
    """
    models, known = packed_models(tuple(shared.models.items()))
    common = _SharedFields(shared, known)
    tables = _packed_tables(forecasts)
    names, horizons, levels = forecasts.names, list(forecasts.horizons), packed_levels(forecasts.levels)
    zones = forecasts.weights.shape[3]
    phrasing = phrasing_of(shared.models)
    entries: list[bytes] = []
    for (ticks, quantiles, weights, calibration), row in zip(tables, rows, strict=True):
        bar = row.bar
        texts = TextPlaces(known)
        symbol, interval = texts.pack(bar.symbol), texts.pack(bar.interval)
        before = common.packed(bar, row.plan, texts)
        if before is None:
            entries.append(encode_entry(decision_at(len(entries))))
            continue
        inputs, digest, plan = before
        try:
            fields: list[Plain] = [
                symbol, interval, shared.as_of_ns, pack_float(bar.close), inputs, digest, plan,
                _REGIMES[row.regime], pack_floats(row.features, texts), None,
                _CIRCUMSTANCES.pack(row.circumstances, texts), _VERDICT.pack(row.verdict, texts),
            ]  # fmt: skip
            if row.governance is not UNSET:
                fields += [*_ABSENT, _GOVERNANCE.pack(row.governance, texts)]
            forecast: list[Plain] = [
                horizons, levels, [texts.pack(name) for name in names], ticks, quantiles, None, zones, weights,
                [pack_float(stretch) for stretch in calibration], None,
            ]  # fmt: skip
            rationale = _packed_rationale(row, phrasing, texts)
        except IntegrityError:  # said again, by the name of the decision
            entries.append(encode_entry(decision_at(len(entries))))
            continue
        entries.append(ENCODER.encode([VERSION, models, fields, forecast, rationale, None]))
    return entries


def _packed_tables(forecasts: ForecastBatch) -> Iterator[tuple[bytes, Plain, Plain, list[float]]]:
    """Of each forecast the experts' ticks, the fused quantiles, the weights and the calibration."""
    (_, num_experts, num, width), zones = forecasts.experts.shape, forecasts.weights.shape[3]
    ticks = pack_each(forecasts.expert_ticks().reshape(-1), num_experts * num, width)
    quantiles = _packed_scaled(forecasts.quantiles, TICKS_PER_UNIT)
    weights = _packed_scaled(forecasts.weights.reshape(-1, num_experts * num, zones), WEIGHT_SCALE)
    return zip(ticks, quantiles, weights, forecasts.calibration.tolist(), strict=True)


def _packed_scaled(tables: NDArray[np.float64], scale: float) -> list[Plain]:
    """Tables [n, rows, columns] as `ticks.pack_scaled` has them, as floats where they are no whole numbers."""
    _, num, width = tables.shape
    packed = pack_scaled_each(tables.reshape(-1), scale, num, width)
    return [
        float_rows(np.ascontiguousarray(tables[place]).reshape(-1), num, width) if table is None else table
        for place, table in enumerate(packed)
    ]


def _packed_rationale(row: NumericFacts, phrasing: Phrasing, texts: TextPlaces) -> list[Plain]:
    """What words the rationale again, as `RationaleFacts` is packed."""
    stated, names = row.rationale, list(row.features)
    drivers = [[names.index(one.feature), pack_float(one.usual)] for one in stated.drivers] or None
    spelled = [
        part for name, words in stated.slots.items() for part in (SLOT_PLACES[name], texts.pack(words))
    ]
    packed: list[Plain] = [
        list(template_places(stated.template, phrasing) or ()),
        drivers,
        None,
        spelled or None,
    ]
    while packed[-1] is None:
        del packed[-1]
    return packed


class _SharedFields:
    """Inputs, digest of the settings and plan, packed once for all that have spelled as many texts before them."""

    def __init__(self, shared: SharedFacts, known: dict[str, int]) -> None:
        self._shared, self._known = shared, known
        self._packed: dict[tuple[int, int], tuple[list[Plain], dict[str, int]]] = {}

    def packed(self, bar: Bar, plan: FidelityPlan, texts: TextPlaces) -> list[Plain] | None:
        """The three fields; their texts join those of the entry. None where the series is called like one of them."""
        key = (len(texts.spelled), id(plan))
        found = self._packed.get(key)
        if found is None:
            found = self._packed[key] = self._pack(key[0], plan)
        packed, spelled = found
        if bar.symbol in spelled or bar.interval in spelled:
            return None
        texts.spelled.update(spelled)
        return packed

    def _pack(self, num_before: int, plan: FidelityPlan) -> tuple[list[Plain], dict[str, int]]:
        texts = TextPlaces(self._known)
        texts.spelled.update({f"\0{place}": -1 for place in range(num_before)})
        packed = [
            _INPUTS.pack(self._shared.inputs, texts),
            texts.pack(self._shared.settings_digest),
            _PLAN.pack(plan, texts),
        ]
        return packed, {text: place for text, place in texts.spelled.items() if place >= 0}
