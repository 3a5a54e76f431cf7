"""What a run has learnt of scheduled events, as figures to show."""

from collections.abc import Sequence

import msgspec
import numpy as np

from htfi.forecasting.known_variance.event_effects import EventEffects
from htfi.forecasting.known_variance.priors import GAP
from htfi.forecasting.known_variance.relations import OWN
from htfi.forecasting.known_variance.surprise_effects import Slope, SurpriseEffects

MAX_KINDS, MAX_SERIES = 40, 8
_MIN_SEEN = 1


class SurpriseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a surprise of one usual size does, each with its central 90% interval.

    `move` is in σ of the forecast band; `variance` is the factor over that of no surprise.
    """

    num: int  # surprises that taught it
    move: Slope
    variance: Slope


class SeriesFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One series: the factor that the band has for the event's bar, and what surprises do."""

    series: str
    factor: float
    surprise: SurpriseFacts


class KindFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of event for the series that it concerns, of one class of assets and one length of bars."""

    kind: str
    assets: str
    length_ns: int
    num_seen: int
    prior_factor: float  # of the width of the band, before the run
    learnt_factor: float
    surprise: SurpriseFacts | None  # None where no surprise was known in time
    series: list[SeriesFacts]  # those that answered most clearly


def event_facts(
    effects: EventEffects, surprises: SurpriseEffects, sources: Sequence[str], names: Sequence[str]
) -> list[KindFacts]:
    """The kinds that bars have held, the largest learnt factor first. `sources` are the table's kinds, `names` the
    series by row."""
    found: list[KindFacts] = []
    for group, (assets, length_ns) in enumerate(effects.groups):
        for kind, name in enumerate(effects.kinds):
            num = surprises.seen(group, kind, OWN)
            if num < _MIN_SEEN or name.startswith(GAP):
                continue
            prior, learnt = effects.class_factors(group, kind, OWN)
            num_known = surprises.num_with_surprise(group, kind, OWN)
            shown, series = None, list[SeriesFacts]()
            if num_known:
                move, variance = surprises.of_class(group, kind, OWN)
                shown = SurpriseFacts(num=num_known, move=move, variance=variance)
                series = _of_series(effects, surprises, sources, names, group, name)
            found.append(
                KindFacts(
                    kind=name, assets=assets, length_ns=length_ns, num_seen=num, prior_factor=prior,
                    learnt_factor=learnt, surprise=shown, series=series,
                )
            )  # fmt: skip
    found.sort(key=lambda one: (-one.learnt_factor, one.kind, one.assets, one.length_ns))
    return found[:MAX_KINDS]


def _of_series(
    effects: EventEffects,
    surprises: SurpriseEffects,
    sources: Sequence[str],
    names: Sequence[str],
    group: int,
    kind: str,
) -> list[SeriesFacts]:
    found: list[SeriesFacts] = []
    places = np.array([place for place, one in enumerate(sources) if one == kind], np.int64)
    all_rows = np.arange(len(names), dtype=np.intp)
    rows = all_rows[effects.groups_of(all_rows) == group]
    relation = effects.relations(rows, places)
    for at, column in np.argwhere(relation == OWN).tolist():
        row, source = int(rows[at]), int(places[column])
        answer = surprises.of_series(row, source)
        if answer is not None:
            num, move, variance = answer
            variances = effects.variances(np.array([row], np.intp), np.array([source]))
            factor = float(np.sqrt(variances[0, 0, 0]))
            shown = SurpriseFacts(num=num, move=move, variance=variance)
            found.append(SeriesFacts(series=names[row], factor=factor, surprise=shown))
    found.sort(key=lambda one: (-_clarity(one.surprise.move), one.series))
    return found[:MAX_SERIES]


def _clarity(move: Slope) -> float:
    return abs(move.value) / (move.high - move.low)
