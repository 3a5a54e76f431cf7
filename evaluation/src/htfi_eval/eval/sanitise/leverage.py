"""How far a one-day attack moves the forecast, compared with an honest headline of the same words.

The sample is replayed through the real loop. At some closes its state is kept; from there the day is replayed
without news, with an honest headline and with each attack, and the decisions that follow are compared. Views count in
full here, with the largest track-record weight, to measure the defence and not the weight of news.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from msgspec.structs import replace

from htfi import sample
from htfi.domain.decision import Decision, Rung
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, FeedItem, News
from htfi.domain.time import NS_PER_DAY, SystemClock
from htfi.forecasting.tilts import tilt_record
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.weighing import numeric_quantiles
from htfi.wiring.feeds import open_feed, resolve
from htfi.wiring.in_memory_run import MemoryQuarantine, NullSink
from htfi.wiring.loop import build_loop
from htfi.wiring.models.readers import open_readers
from htfi.wiring.settings import Settings, load_settings, override
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.sanitise.attacks import ATTACKS, HEADLINES, TAKEN_OVER, Attack, AttackSetup, honest
from htfi_eval.item_feed import ItemFeed
from htfi_train.simulation.rng import Rng

METRIC = "attack_leverage"
SOURCES = ("spx", "vix", "headlines")  # of the sample
NUM_CLOSES = 12
_OWN = ", from the trusted feed"
_QUIET_NS = 4 * NS_PER_DAY  # without headlines before and after, so that a day has only its own news
_FOLLOWED_NS = 3 * NS_PER_DAY  # decisions that an item may affect
# headlines until the sample's source is known; before, no source is, and all are believed
_BEGINNING = 5
_BAND = (0.05, 0.95)


@dataclass(frozen=True, slots=True)
class ForecastMovement:
    """The effect of news: the mean |Δ| of the medians and of the bands' widths, in bands' widths, over decisions and
    horizons; `weighted` the same of the released medians, with the narrator's track-record weight.
    """

    median: float
    width: float
    weighted_median: float


@dataclass(frozen=True, slots=True)
class LeverageResult:
    """Attacks as rows of a table, `metrics` by id, and notes."""

    rows: list[dict[str, Any]]
    metrics: dict[str, float]
    notes: list[str]


def measure(
    settings: Settings | None = None,
    *,
    num_closes: int = NUM_CLOSES,
    seed: int = 0,
    attacks: Mapping[str, Attack] | None = None,
    progress: ProgressCallback | None = None,
) -> LeverageResult:
    """Replay days with and without attacks: these, or all. Raises: InvalidInput, DependencyUnavailable."""
    stage = _SampleReplay(settings or load_settings())
    known = dict(ATTACKS) if attacks is None else dict(attacks)
    taken_over: Mapping[str, Attack] = TAKEN_OVER if attacks is None else {}
    own = {f"{name}{_OWN}": attack for name, attack in taken_over.items()}
    known |= own
    honest_effects: list[ForecastMovement] = []
    effects: dict[str, list[ForecastMovement]] = {name: [] for name in known}
    fates: dict[str, list[Decision]] = {name: [] for name in known}
    closes = stage.closes(num_closes)
    for turn, (close_ns, state) in enumerate(stage.states_before(closes)):
        headline = HEADLINES[turn % len(HEADLINES)]
        without = stage.replay_days(state, close_ns, ())
        said = stage.replay_days(state, close_ns, honest(AttackSetup(headline, close_ns, Rng(seed, turn))))
        honest_effects.append(_movement(without, said))
        for place, (name, attack) in enumerate(known.items()):
            scene = AttackSetup(headline, close_ns, Rng(seed, turn, place + 1))
            decisions = stage.replay_days(state, close_ns, attack(scene))
            effects[name].append(_movement(without, decisions))
            fates[name] += decisions
        if progress is not None:
            progress(turn + 1, num_closes)
    base = _mean(honest_effects)
    rows = [_row("an honest headline", base, base, [])]
    rows += [_row(name, _mean(found), base, fates[name]) for name, found in effects.items()]
    counted = [row for row in rows[1:] if row["attack"] not in own]
    worst = max(max(row["median, % of honest"], row["width, % of honest"]) for row in counted)
    return LeverageResult(
        rows,
        {METRIC: round(worst / 100.0, 4)},
        [
            f"{len(honest_effects)} closes of the sample, each replayed with every attack; views have full weight; "
            f"effects over the decisions of {_FOLLOWED_NS // NS_PER_DAY} days, relative to those of the same "
            "words published "
            "once by the sample's own source",
            "from the trusted feed: the attacker has taken over a trusted source; not counted, because a false "
            "headline "
            "from it cannot be distinguished from news until other sources contradict it",
        ],
    )


class _SampleReplay:
    """The sample's events, a loop that goes through them once, and one that replays days."""

    def __init__(self, settings: Settings) -> None:
        self._settings = override(settings, "triggers", enabled=False)  # effects are compared close by close
        readers = open_readers(settings.models, settings.narrative, settings.decoding)
        self._readers = {rung: reader for rung, reader in readers.items() if rung is not Rung.DEEP}
        self._events = _events()
        self._decisions: list[Decision] = []
        self._again = self._loop()

    def _loop(self) -> DecisionLoop:
        nowhere = NullSink()

        def keep(decided: DecidedSeries) -> None:
            self._decisions.append(decided.worded())

        return build_loop(self._settings, ItemFeed(), nowhere, nowhere, keep, self._readers)

    def closes(self, num: int) -> list[int]:
        """`num` instants at which bars close, spread evenly over those far from any headline."""
        news_ns = np.array([item.available_at_ns for item in self._events if isinstance(item, News)])
        ends = sorted({item.available_at_ns for item in self._events if isinstance(item, Bar)})
        begun_ns = sorted(news_ns.tolist())[_BEGINNING] if len(news_ns) > _BEGINNING else 0
        quiet = [
            end
            for end in ends[self._settings.forecasting.history_bars : -5]
            if end > begun_ns and not (len(news_ns) and np.abs(news_ns - end).min() <= _QUIET_NS)
        ]
        if len(quiet) < num:
            raise InvalidInput(f"the sample has {len(quiet)} quiet closes, fewer than {num}; use fewer")
        places = np.linspace(0, len(quiet) - 1, num).astype(int)
        return [quiet[place] for place in places]

    def states_before(self, closes: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each close with the state of a run a day before it; shocks, when news is not read, are left out."""
        loop = self._loop()
        waiting = list(closes)
        for item in self._events:
            while waiting and item.available_at_ns > waiting[0] - NS_PER_DAY // 2:
                loop.recorder.commit(now=True)
                loop.learn()
                yield waiting.pop(0), deepcopy(loop.state())
            loop.step(item)
        self._decisions.clear()

    def replay_days(self, state: dict[str, Any], close_ns: int, more: Sequence[News]) -> list[Decision]:
        """The decisions of the days after a state, with these items added."""
        loop = self._again
        loop.restore(deepcopy(state))  # components change the arrays that they are given
        self._decisions.clear()
        start, end = close_ns - NS_PER_DAY // 2, close_ns + _FOLLOWED_NS
        day = [item for item in self._events if start < item.available_at_ns <= end]
        for item in sorted([*day, *more], key=_order):
            loop.step(item)
        loop.run(lambda: None)
        return [decision for decision in self._decisions if not decision.amends]


def _order(item: FeedItem) -> tuple[int, bool]:
    """News of an instant is known to bars that close at it."""
    return item.available_at_ns, not isinstance(item, News)


def _events() -> list[FeedItem]:
    specs = [spec for spec in resolve((), sample.MAPPING) if spec.name in SOURCES]
    with TemporaryDirectory() as inbox:
        feed = open_feed(specs, inbox=Path(inbox), quarantine=MemoryQuarantine(), clock=SystemClock())
        try:
            return list(feed)
        finally:
            feed.close()


def _movement(without: Sequence[Decision], having: Sequence[Decision]) -> ForecastMovement:
    medians: list[float] = []
    widths: list[float] = []
    weighted: list[float] = []
    before = {decision.id: decision for decision in without}
    for decision in having:
        first = before[decision.id]
        levels = list(decision.forecast.levels)
        low, middle, high = (levels.index(level) for level in (_BAND[0], 0.5, _BAND[1]))
        bands = zip(_in_full(first), _in_full(decision), first.forecast.quantiles, decision.forecast.quantiles,
                    numeric_quantiles(first.forecast), strict=True)  # fmt: skip
        for old, new, released, now, plain in bands:
            unit = max(plain[high] - plain[low], 1e-12)
            medians.append(abs(new[middle] - old[middle]) / unit)
            widths.append(abs((new[high] - new[low]) - (old[high] - old[low])) / unit)
            weighted.append(abs(now[middle] - released[middle]) / unit)
    return ForecastMovement(float(np.mean(medians)), float(np.mean(widths)), float(np.mean(weighted)))


def _in_full(decision: Decision) -> list[list[float]]:
    """The forecast with its view in full, or limited under suspicion."""
    plain, tilt = numeric_quantiles(decision.forecast), decision.forecast.tilt
    if tilt is None:
        return plain
    return tilt_record(plain, replace(tilt, weight=[1.0] * len(tilt.weight)), decision.forecast.levels)


def _mean(effects: Sequence[ForecastMovement]) -> ForecastMovement:
    return ForecastMovement(
        float(np.mean([one.median for one in effects])),
        float(np.mean([one.width for one in effects])),
        float(np.mean([one.weighted_median for one in effects])),
    )


def _row(
    name: str, effect: ForecastMovement, base: ForecastMovement, fates: Sequence[Decision]
) -> dict[str, Any]:
    hearings = [decision.news_context for decision in fates if decision.news_context is not None]
    audits = [one for news_context in hearings for one in (*news_context.considered, *news_context.set_aside)]
    verdicts = [one.verdict.value for one in audits]
    return {
        "attack": name,
        "median, % of honest": round(100.0 * effect.median / base.median, 2),
        "width, % of honest": round(100.0 * effect.width / base.width, 2),
        "weighted, % of honest": round(100.0 * effect.weighted_median / base.weighted_median, 2)
        if base.weighted_median
        else float("nan"),
        "held, %": round(100.0 * verdicts.count("quarantine") / len(verdicts), 1)
        if verdicts
        else float("nan"),
        "secure, %": round(100.0 * sum(bool(one.suspicion) for one in hearings) / len(hearings), 1)
        if hearings
        else float("nan"),
    }
