"""What the swap test of views costs in CRPS: the same staged news through the loop of a run, with the test and without.

Prices and tweets of StockNet for large companies; of each company and day the tweet of the widest reach counts. Facts
read alone, as each swap is a reading more. The policy bundle is the same but for `fairness.test_views`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.events import FeedItem, News
from htfi.domain.governance import GovernanceFacts
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import crps
from htfi.governance.bundles.bundle import BundleHead, BundleKind, parse_bundle, write_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.control.entries import BundleAdopted, encode_governance
from htfi.governance.fairness.config import FairnessConfig
from htfi.narrative.text import clean
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.governance_ports import NoGovernanceLog
from htfi.pipeline.governed import RunGovernance
from htfi.wiring.in_memory_run import NullSink
from htfi.wiring.run import build_loop
from htfi.wiring.settings import Settings, load_settings
from htfi_eval.eval.narrative.real_text import PublishedText, stocknet, without_repeats
from htfi_eval.eval.price_grid import Prices

SYMBOLS = ("AAPL", "BA", "BAC", "XOM")
_QUICK_SYMBOLS = SYMBOLS[:1]
_LAST, _QUICK_LAST = "2014-12-31", "2014-04-30"
_MAX_CHARS = 300
_NUM_DRAWS = 2_000
_SEED = 19

Array = NDArray[np.float64]


@dataclass(slots=True)
class SwapCost:
    """Losses [n] of the same forecasts without and with the swap test, in usual moves; `days` [n] for resampling.

    Of decisions with a view only; `num_weighed_down` lost part of it, `num_withheld` of these were withheld.
    """

    without: Array
    tested: Array
    days: NDArray[np.int64]
    num_weighed_down: int
    num_withheld: int

    @property
    def cost(self) -> float:
        """Σ tested / Σ without − 1: what the layer adds to CRPS."""
        return float(self.tested.sum() / self.without.sum()) - 1.0

    def interval(self) -> tuple[float, float]:
        """The 95% interval of the cost, by drawing whole days again."""
        _, days = np.unique(self.days, return_inverse=True)
        sums = [np.bincount(days, losses) for losses in (self.tested, self.without)]
        rng = np.random.Generator(np.random.PCG64(_SEED))
        num = len(sums[0])
        draws = rng.multinomial(num, np.full(num, 1.0 / num), _NUM_DRAWS)
        low, high = np.quantile((draws @ sums[0]) / (draws @ sums[1]) - 1.0, (0.025, 0.975))
        return float(low), float(high)

    @property
    def note(self) -> str:
        low, high = self.interval()
        return (
            f"the swap test on staged news: CRPS {self.cost:+.3%} ({low:+.3%} to {high:+.3%}) in {len(self.days):,} "
            f"forecasts with a view; {self.num_weighed_down:,} views were weighed down, {self.num_withheld:,} of these "
            "decisions withheld, whose forecasts are scored all the same"
        )


def measure_cost(data: Path, *, quick: bool) -> SwapCost:
    """Raises: InvalidInput where the staged news are missing, DependencyUnavailable."""
    if not (data / "text_price" / "stocknet_tweets.parquet").is_file():
        raise InvalidInput(f"{data / 'text_price' / 'stocknet_tweets.parquet'} is missing")
    prices, texts = stocknet(data)
    names = _QUICK_SYMBOLS if quick else SYMBOLS
    prices = prices.cut(names, last=_QUICK_LAST if quick else _LAST)
    return compare(prices, without_repeats(texts))


def compare(prices: Prices, texts: Sequence[PublishedText]) -> SwapCost:
    """Run both ways over the same events, and score what has a view in both."""
    events = _events(prices, _widest(prices, texts))
    settings = load_settings(environment={})
    first = _run(settings, events, FairnessConfig(test_views=False))
    second = _run(settings, events, FairnessConfig(test_views=True))
    outcomes = _outcomes(prices)
    levels = np.array(ForecastConfig().levels)
    usual = {symbol: float(np.mean(np.abs(list(moves.values())))) for symbol, moves in outcomes.items()}
    losses: tuple[list[float], list[float]] = ([], [])
    days: list[int] = []
    num_weighed_down = num_withheld = 0
    for key, found in second.items():
        symbol, at_ns = key
        if not found.has_view or key not in first or at_ns not in outcomes[symbol]:
            continue
        outcome = np.asarray(outcomes[symbol][at_ns])
        for kept, of in zip(losses, (first[key], found), strict=True):
            kept.append(float(crps(of.quantiles, outcome, levels)) / usual[symbol])
        days.append(at_ns // NS_PER_DAY)
        num_weighed_down += found.weight < 1.0
        num_withheld += found.is_held
    if not days:
        raise InvalidInput("no forecast on the staged news has a view")
    return SwapCost(
        np.array(losses[0]), np.array(losses[1]), np.array(days, np.int64), num_weighed_down, num_withheld
    )


@dataclass(frozen=True, slots=True)
class _StatedForecast:
    """One forecast on a bar: quantiles [Q] of one bar ahead, and what the swap test left of its view."""

    quantiles: Array
    has_view: bool
    weight: float
    is_held: bool


def _run(
    settings: Settings, events: Sequence[FeedItem], config: FairnessConfig
) -> Mapping[tuple[str, int], _StatedForecast]:
    """The forecasts of a run by symbol and bar's end."""
    text = write_bundle(BundleHead(1, "", BundleKind.QUORUM, "eval", 0), BundleTables(fairness=config))
    adopted = encode_governance(BundleAdopted(1, 0, parse_bundle(text).digest, 1, text))
    found: dict[tuple[str, int], _StatedForecast] = {}

    def watch(decided: DecidedSeries) -> None:
        if decided.is_between_bars or decided.amends:
            return
        decision = decided.decision
        governed = decision.governance
        swaps = governed.swaps if isinstance(governed, GovernanceFacts) else UNSET
        weight = 1.0 if swaps is UNSET else swaps.weight
        found[decision.symbol, decision.circumstances.bar_end_ns] = _StatedForecast(
            np.array(decided.quantiles[0]),
            decision.view is not None,
            weight,
            swaps is not UNSET and weight <= swaps.min_weight,
        )

    governance = RunGovernance(settings.policy, NoGovernanceLog([(adopted, "")]))
    nowhere = NullSink()
    loop = build_loop(settings, _ListFeed(list(events)), nowhere, nowhere, watch, {}, governance=governance)
    loop.run(lambda: None)
    return found


@dataclass(slots=True)
class _ListFeed:
    """A feed of events in memory."""

    items: list[FeedItem] = field(default_factory=list[FeedItem])

    def __iter__(self) -> Iterator[FeedItem]:
        return iter(self.items)

    def position(self) -> dict[str, object]:
        return {}

    def progress(self) -> float | None:
        return None

    def stop(self) -> None: ...

    def close(self) -> None: ...


def _widest(prices: Prices, texts: Sequence[PublishedText]) -> list[News]:
    """Of each company and day the text of the widest reach, up to the last price."""
    best: dict[tuple[str, int], PublishedText] = {}
    end_ns = int(prices.ends_ns.max())
    for one in texts:
        for symbol in set(one.symbols) & set(prices.symbols):
            key = symbol, one.published_ns // NS_PER_DAY
            if one.published_ns < end_ns and (key not in best or one.reach > best[key].reach):
                best[key] = one
    return [
        News(
            one.published_ns, one.published_ns, "stocknet", row, f"n{row}", clean(one.text, _MAX_CHARS), (symbol,)
        )
        for row, ((symbol, _), one) in enumerate(sorted(best.items(), key=lambda pair: pair[1].published_ns))
    ]  # fmt: skip


def _events(prices: Prices, news: Sequence[News]) -> list[FeedItem]:
    """Bars and news in the order in which they are known."""
    bars = [bar for t in range(len(prices.ends_ns)) for bar in prices.bars(t)]
    return sorted([*bars, *news], key=lambda one: one.available_at_ns)


def _outcomes(prices: Prices) -> dict[str, dict[int, float]]:
    """The log return after each bar, by symbol and the bar's end."""
    found: dict[str, dict[int, float]] = {}
    for place, symbol in enumerate(prices.symbols):
        there = np.flatnonzero(np.isfinite(prices.close[:, place]))
        moves = np.diff(np.log(prices.close[there, place]))
        found[symbol] = dict(zip(prices.ends_ns[there[:-1]].tolist(), moves.tolist(), strict=True))
    return found
