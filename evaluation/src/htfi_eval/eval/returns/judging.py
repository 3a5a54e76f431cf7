"""Scores one data set for `htfi eval returns`: the forecasters, the comparisons, rows and figures."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput, MissingExtra
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.evaluation.differences import benjamini_hochberg, holm
from htfi.wiring.experts import open_path_sampler
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.garch import GarchPeer, fit_yearly
from htfi_eval.eval.peers import EWMA, HAR_FHS, HISTVOL, classical, statsforecast_peers
from htfi_eval.eval.prices import Prices
from htfi_eval.eval.returns.mini_peer import (
    NUM_DRAWN_POINTS,
    NUM_POINTS,
    MiniPeer,
    choose_points,
    mini_figures,
)
from htfi_eval.eval.returns.scores import WalkScores, score
from htfi_eval.eval.walk import (
    CRISES,
    FUSED,
    REGIMES,
    PeerForecaster,
    RealisedOutcomes,
    Walk,
    measure_outcomes,
    within,
)

OUT_OF_SAMPLE = {"us_equities": "2012-01-01"}
GARCH = (
    "arch_t",
    "arch_t_mean",
    "arch_t_paths",
)  # zero mean; constant mean, arch's default; simulated beyond a bar
MIN_IN_REGIME = 1_000  # minimum forecasts for a regime's coverage to count in the metric
FAULTS_NOTED = 5
MAX_INSTANTS_FOR_STATSFORECAST = 10_000
_YEAR_NS = 365 * NS_PER_DAY
_SHOWN = ("SPY", "AAPL", "VIX", "XAUUSD", "EURUSD", "SPX")


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """The chosen options."""

    config: ForecastConfig
    first: str | None = None
    with_fitted: bool = True
    with_mini: bool = False
    with_calendar: bool = False
    fresh: bool = False
    seed: int = 0


@dataclass(slots=True)
class DatasetJudgement:
    """One data set's scores, table rows, and the p-value of each comparison by its row."""

    scores: WalkScores
    rows: list[dict[str, Any]]
    notes: list[str]
    p_values: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    regimes: list[tuple[str, int, str, float, int]] = field(
        default_factory=list[tuple[str, int, str, float, int]]
    )  # data, bars, where, coverage, num


def judge(prices: Prices, options: WalkOptions, progress: ProgressCallback | None = None) -> DatasetJudgement:
    """Walk one data set with all peers. Raises: InvalidInput if it is too short to score."""
    config = options.config
    early, begin = first_scored(prices, options.first)
    measured = measure_outcomes(prices, config)
    if not np.isfinite(measured.outcomes[begin:]).any():
        raise InvalidInput(
            f"{prices.name}: {len(prices.ends_ns)} instants are too few: the scored part has no outcome "
            f"{config.horizons[0]} bars later"
        )
    peers: list[PeerForecaster] = list(classical(len(prices.symbols), config, begin))
    garch, notes = (
        garch_peers(prices, measured, begin, options, progress) if options.with_fitted else ([], [])
    )
    rare, peer_notes = (
        _statsforecast_peers(prices, measured, begin, options) if options.with_fitted else ([], [])
    )
    if options.with_mini:
        chosen = choose_points(measured, begin, config, options.seed)
        rare.append(MiniPeer(open_path_sampler(), chosen, config))
        peer_notes.append(
            f"{prices.name}: {NUM_POINTS:,} forecasts of htfi-mini at most for each horizon, {NUM_DRAWN_POINTS:,} "
            "from paths"
        )
    walk = Walk(prices, config, [*peers, *garch, *rare])
    core = [name for name in walk.names if name not in [peer.name for peer in rare]]
    shown = next(
        (prices.symbols.index(name) for name in _SHOWN if name in prices.symbols), _longest_series(prices)
    )
    scores = score(walk, measured, early, begin, core, shown, progress)
    if not scores.common.any():
        everyone = ", ".join(core)
        raise InvalidInput(
            f"{prices.name}: no forecast by all of {everyone} has an outcome: the history is too short"
        )
    judged = DatasetJudgement(scores, [], [*prices.notes, *notes, *peer_notes])
    faults = walk.forecaster.price_faults
    judged.notes += [f"{prices.name}: {fault}" for fault in faults[:FAULTS_NOTED]]
    if len(faults) > FAULTS_NOTED:
        judged.notes.append(f"{prices.name}: and {len(faults) - FAULTS_NOTED:,} more faults of prices")
    judged.notes += mini_figures(scores, [name for name in GARCH if name in scores.names])[1]
    for j in range(len(scores.horizons)):
        _compare(judged, j)
    for j in range(len(scores.horizons)):
        _by_regime(judged, j)
    return judged


def first_scored(prices: Prices, first: str | None) -> tuple[int, int]:
    """The first instants of the fused forecast's coverage and of the comparison.

    A year in (a quarter of a short file), or at the stated date; us_equities is compared from 2012 on.
    """
    num = len(prices.ends_ns)
    early = min(int(np.searchsorted(prices.ends_ns, int(prices.ends_ns[0]) + _YEAR_NS)), num // 4)
    stated = first or OUT_OF_SAMPLE.get(prices.name)
    if stated is None:
        return early, early
    try:
        begin = int(np.searchsorted(prices.ends_ns, np.datetime64(stated, "ns").astype(np.int64)))
    except ValueError as error:
        raise InvalidInput(f"--from {stated} is not a date: write 2012-01-31") from error
    if begin >= num:
        raise InvalidInput(f"--from {stated}: {prices.name} ends on {prices.dates()[-1]}")
    return min(early, begin), begin


def correct_p_values(judged: Sequence[DatasetJudgement]) -> None:
    """Write the p-values into the rows, adjusted for all comparisons of the run."""
    chances = [chance for one in judged for _, chance in one.p_values]
    corrected = iter(zip(holm(chances), benjamini_hochberg(chances), strict=True))
    for one in judged:
        for (row, _), (by_holm, by_rate) in zip(one.p_values, corrected, strict=False):
            one.rows[row] |= {"p, Holm": _short(by_holm), "q, BH": _short(by_rate)}


def metrics_of(judged: DatasetJudgement) -> dict[str, float]:
    """Figures of one data set under METRICS' names; those that cannot be computed are left out."""
    scores, places = judged.scores, range(len(judged.scores.horizons))
    found = {
        "crps_vs_histvol20": max(scores.ratio(HISTVOL, j) for j in places)
        if HISTVOL in scores.names
        else math.nan,
        "crps_vs_ewma": max(scores.ratio(EWMA, j) for j in places),
        "crps1_vs_har_fhs": scores.ratio(HAR_FHS, 0) if HAR_FHS in scores.names else math.nan,
        "coverage90": min(scores.coverage(FUSED, j)[0] for j in places),
        "coverage90_upper": max(scores.coverage(FUSED, j)[0] for j in places),
    }
    garch = [name for name in GARCH if name in scores.names]
    if garch:  # the best of its forms at each horizon
        found["crps_vs_garch_t"] = max(max(scores.ratio(name, j) for name in garch) for j in places)
    found |= mini_figures(scores, garch)[0]
    return {key: value for key, value in found.items() if math.isfinite(value)}


def worst_regime(judged: Sequence[DatasetJudgement]) -> tuple[float, str] | None:
    """The lowest coverage over data sets, horizons, regimes and crises with enough forecasts, and where it is."""
    enough = [one for item in judged for one in item.regimes if one[4] >= MIN_IN_REGIME]
    if not enough:
        return None
    data, bars, where, share, num = min(enough, key=lambda one: one[3])
    return share, f"{where}, {data}, {bars} bars, {num:,} forecasts"


def _statsforecast_peers(
    prices: Prices, measured: RealisedOutcomes, begin: int, options: WalkOptions
) -> tuple[list[PeerForecaster], list[str]]:
    if len(prices.ends_ns) - begin > MAX_INSTANTS_FOR_STATSFORECAST:
        return [], [f"{prices.name}: statsforecast is left out: it is too slow for so many instants"]
    try:
        peers, note = statsforecast_peers(measured.returns, begin, options.config, fresh=options.fresh)
    except MissingExtra as error:
        return [], [f"{prices.name}: {error}"]
    return list(peers), [f"{prices.name}: {note}"]


def garch_peers(
    prices: Prices,
    measured: RealisedOutcomes,
    begin: int,
    options: WalkOptions,
    progress: ProgressCallback | None,
) -> tuple[list[PeerForecaster], list[str]]:
    """GARCH(1,1)-t of arch in three forms, and a note on how it was fitted, or why it is missing."""
    try:
        mean, plain = (
            fit_yearly(
                measured.returns,
                prices.ends_ns,
                begin,
                constant_mean=constant,
                fresh=options.fresh,
                progress=progress,
            )
            for constant in (True, False)
        )
    except MissingExtra as error:
        return [], [f"{prices.name}: GARCH of arch is left out: {error}"]
    if not plain.num_fitted:
        return [], [
            f"{prices.name}: GARCH of arch is left out: it needs 250 bars of a series before the first date scored"
        ]
    config, returns, seed = options.config, measured.returns, options.seed
    peers: list[PeerForecaster] = [
        GarchPeer(GARCH[0], returns, plain, config, tails="t"),
        GarchPeer(GARCH[1], returns, mean, config, tails="t"),
        GarchPeer(GARCH[2], returns, plain, config, tails="simulated", seed=seed),
    ]
    what = "from the cache" if plain.was_cached and mean.was_cached else "made in this run"
    return peers, [f"{prices.name}: {plain.num_fitted + mean.num_fitted:,} GARCH fits by arch, {what}"]


def _compare(judged: DatasetJudgement, j: int) -> None:
    """A row for each forecaster at the j-th horizon."""
    scores = judged.scores
    for name in scores.names:
        both = scores.both(name, j)
        if not both.any():
            continue
        cover90, num = scores.coverage(name, j, 90)
        row: dict[str, Any] = {
            "data": scores.prices.name, "bars": scores.horizons[j], "forecaster": name, "n": num,
            "CRPS, bp": 1e4 * scores.mean_crps(name, j, both), "fused/row": scores.ratio(name, j),
            "WQL": scores.wql(name, j), "coverage 50": scores.coverage(name, j, 50)[0], "coverage 90": cover90,
        }  # fmt: skip
        if name != FUSED:
            found = scores.difference(name, j)
            row["DM"] = found.statistic
            judged.p_values.append((len(judged.rows), found.p))
        judged.rows.append(row)


def _by_regime(judged: DatasetJudgement, j: int) -> None:
    """Coverage of the fused forecast in each regime at forecast time, and in each crisis."""
    scores = judged.scores
    for where, chosen in regimes_of(scores):
        share, num = scores.held_share(j, chosen)
        if not num:
            continue
        data, bars = scores.prices.name, scores.horizons[j]
        judged.regimes.append((data, bars, where, share, num))
        judged.rows.append(
            {"data": data, "bars": bars, "forecaster": f"{FUSED}, {where}", "n": num, "coverage 90": share}
        )


def regimes_of(scores: WalkScores) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Each regime and crisis by name, and its forecasts [T, N]. Regimes count from `begin` on, crises from `first`."""
    since = scores.since_begin()
    for place, regime in enumerate(REGIMES):
        yield regime.value, (scores.regimes == place) & since
    for span in CRISES:
        inside = within(scores.prices, span, scores.first)
        yield f"crisis {span.label}", np.broadcast_to(inside[:, None], scores.regimes.shape)


def _longest_series(prices: Prices) -> int:
    return int(np.isfinite(prices.close).sum(axis=0).argmax())


def _short(chance: float) -> float:
    return float(f"{chance:.2g}")
