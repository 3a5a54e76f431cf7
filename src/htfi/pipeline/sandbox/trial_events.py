"""The events of a trial, instant by instant, and what came of them: pure, from its description and some history."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import series_id
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, FeedItem, News, TimePassed, Trade
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.governance.sandbox.trials import SandboxTrial, TrialFeed, TrialMarket, TrialNews
from htfi.pipeline.sandbox.market import simulate_market
from htfi.pipeline.sandbox.news import stage_news

Array = NDArray[np.float64]

_SYMBOLS = ("ALFA", "BRVO")
_START_NS = 1_700_000_000 * NS_PER_S
_BLOCK_BARS = 40  # that stay together in a disguised history, so that volatility clusters as it did
_NOISE = 0.05
_BURST_S = 5.0
_LOST, _TWICE, _DELAYED, _BROKEN = 0.01, 0.02, 0.02, 0.01  # shares of a faulty link's events


@dataclass(frozen=True, slots=True)
class Instant:
    """Events that become known together; the series whose bars are among them, and which bar of each it is."""

    events: tuple[FeedItem, ...]
    series: tuple[str, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TrialEvents:
    """All instants of a trial. `closes` are those of each series in the order of its bars, as they were.

    `signs` says which way a headline really moved a series, by series and bar. `needed_events_per_s` is the rate that
    a peak load asks for, 0 elsewhere.
    """

    instants: tuple[Instant, ...]
    closes: Mapping[str, tuple[float, ...]]
    signs: Mapping[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    needed_events_per_s: float = 0.0

    @property
    def num_events(self) -> int:
        return sum(len(one.events) for one in self.instants)


def make_trial_events(
    trial: SandboxTrial, history: Sequence[Bar], attacks: Sequence[News], peak_events_per_s: float
) -> TrialEvents:
    """What happens in a trial. `history` are bars in order; `peak_events_per_s` is the busiest second of six months.

    `attacks` are recorded items of the sanitiser's evaluation. Raises: InvalidInput where the history is too short.
    """
    rng = np.random.Generator(np.random.PCG64(trial.seed))
    match trial.market:
        case TrialMarket.HISTORY:
            bars = _newest(history, trial.num_bars)
        case TrialMarket.DISGUISED:
            bars = disguise(_newest(history, trial.num_bars), rng)
        case TrialMarket.CALM | TrialMarket.CRISIS:
            moves = simulate_market(
                rng, len(_SYMBOLS), trial.num_bars, is_crisis=trial.market is TrialMarket.CRISIS
            )
            bars = _simulated_bars(moves)
    signs: dict[tuple[str, int], float] = {}
    items: list[News] = []
    if trial.news is not TrialNews.NONE:
        staged = stage_news(trial.news, bars, attacks, rng)
        bars, items, signs = staged.bars, staged.items, staged.signs
    closes: dict[str, list[float]] = {}
    for bar in bars:
        closes.setdefault(series_id(bar.symbol, bar.interval), []).append(bar.close)
    instants = _instants([*bars, *items])
    if trial.feed is TrialFeed.FAULTY:
        instants = _over_faulty_link(instants, rng)
    needed = 0.0
    if trial.feed is TrialFeed.PEAK:
        needed = 2.0 * peak_events_per_s
        instants += _burst(instants[-1].events[-1].available_at_ns, needed, rng)
    return TrialEvents(
        tuple(instants), {name: tuple(values) for name, values in closes.items()}, signs, needed
    )


def disguise(bars: Sequence[Bar], rng: np.random.Generator) -> list[Bar]:
    """The same market at another time: blocks of its moves in another order, all of another size, none quite the same.

    Series that moved together still do. Who has learnt the history by heart knows nothing of it.
    """
    by_instant: dict[int, list[Bar]] = {}
    for bar in bars:
        by_instant.setdefault(bar.end_ns, []).append(bar)
    ends = sorted(by_instant)
    names = {series_id(bar.symbol, bar.interval): bar for bar in bars}
    before: dict[int, dict[str, float]] = {}
    newest: dict[str, float] = {}
    for end in ends:
        before[end] = dict(newest)
        newest |= {series_id(bar.symbol, bar.interval): bar.close for bar in by_instant[end]}
    blocks = [ends[at : at + _BLOCK_BARS] for at in range(1, len(ends), _BLOCK_BARS)]
    order = [end for place in rng.permutation(len(blocks)) for end in blocks[int(place)]]
    scale = {name: float(np.exp(rng.uniform(-0.3, 0.3))) for name in names}
    renamed = {name: f"S{place}" for place, name in enumerate(names)}
    price = {name: 100.0 * float(np.exp(rng.normal())) for name in names}
    made: list[Bar] = []
    shift = _START_NS // NS_PER_DAY * NS_PER_DAY - ends[0] // NS_PER_DAY * NS_PER_DAY
    for end, old in zip(ends[1:], order, strict=True):
        for bar in by_instant[old]:
            name = series_id(bar.symbol, bar.interval)
            if name not in before[old]:
                continue
            size = scale[name] * float(np.exp(_NOISE * rng.normal()))
            fields = {
                key: price[name] * math.exp(size * math.log(getattr(bar, key) / before[old][name]))
                for key in ("open", "high", "low", "close")
            }
            late = bar.available_at_ns - bar.end_ns
            length = bar.end_ns - bar.start_ns
            made.append(
                msgspec.structs.replace(
                    bar, **fields, symbol=renamed[name], source="trial", row=len(made) + 1, id="",
                    start_ns=end + shift - length, end_ns=end + shift, event_time_ns=end + shift,
                    available_at_ns=end + shift + late,
                )
            )  # fmt: skip
            price[name] = fields["close"]
    return made


def _newest(history: Sequence[Bar], num_bars: int) -> list[Bar]:
    ends = sorted({bar.end_ns for bar in history})[-num_bars:]
    if len(ends) < 60:
        raise InvalidInput(f"a history of {len(ends)} bars is too short for a trial: give 60 at least")
    return [bar for bar in history if bar.end_ns >= ends[0]]


def _simulated_bars(moves: Array) -> list[Bar]:
    """Daily bars of moves [T, N, 4] (log open, high, low, close against the close before)."""
    made: list[Bar] = []
    price = [100.0] * moves.shape[1]
    for t in range(moves.shape[0]):
        end = _START_NS // NS_PER_DAY * NS_PER_DAY + (t + 1) * NS_PER_DAY
        for n, symbol in enumerate(_SYMBOLS):
            fields = dict(
                zip(("open", "high", "low", "close"), (price[n] * np.exp(moves[t, n])).tolist(), strict=True)
            )
            made.append(
                Bar(
                    available_at_ns=end + NS_PER_S, event_time_ns=end, source="trial", row=len(made) + 1, symbol=symbol,
                    interval="1d", start_ns=end - NS_PER_DAY, end_ns=end, volume=1_000.0, **fields,
                )
            )  # fmt: skip
            price[n] = fields["close"]
    return made


def _instants(events: Sequence[Bar | News]) -> list[Instant]:
    """Events in order of time, those of one instant together; each ends with a sign that time has passed."""
    by_time: dict[int, list[Bar | News]] = {}
    for event in events:
        by_time.setdefault(event.available_at_ns, []).append(event)
    seen: dict[str, int] = {}
    made: list[Instant] = []
    for at_ns, found in sorted(by_time.items()):
        places: dict[str, int] = {}
        for event in found:
            if isinstance(event, Bar):
                name = series_id(event.symbol, event.interval)
                places[name] = seen.get(name, 0)
                seen[name] = places[name] + 1
        ordered = sorted(found, key=lambda event: isinstance(event, Bar))
        made.append(Instant((*ordered, TimePassed(at_ns + 1)), tuple(places), tuple(places.values())))
    return made


def _over_faulty_link(instants: Sequence[Instant], rng: np.random.Generator) -> list[Instant]:
    """Events lost; news sent twice or late; bars with a high and a low that no market had."""
    found: list[Instant] = []
    delayed: list[News] = []
    for one in instants:
        *events, passed = one.events
        at_ns = passed.available_at_ns - 1
        arrived: list[FeedItem] = [msgspec.structs.replace(event, available_at_ns=at_ns) for event in delayed]
        delayed = []
        for event in events:
            fate = float(rng.random())
            if fate < _LOST:
                continue
            if isinstance(event, Bar):
                is_broken = fate < _LOST + _BROKEN
                arrived.append(
                    msgspec.structs.replace(event, high=event.high * 1.5, low=event.low / 1.5)
                    if is_broken
                    else event
                )
            elif isinstance(event, News) and fate < _LOST + _DELAYED:
                delayed.append(event)
            else:
                arrived += [event] * (2 if fate > 1.0 - _TWICE else 1)
        present = {series_id(event.symbol, event.interval) for event in arrived if isinstance(event, Bar)}
        kept = [(name, place) for name, place in zip(one.series, one.places, strict=True) if name in present]
        found.append(
            Instant((*arrived, passed), tuple(name for name, _ in kept), tuple(place for _, place in kept))
        )
    return found


def _burst(after_ns: int, events_per_s: float, rng: np.random.Generator) -> list[Instant]:
    """Trades at this rate for some seconds, those of a tenth of a second in one instant."""
    each = max(int(events_per_s / 10.0), 1)
    price, row, made = 100.0, 0, list[Instant]()
    for place in range(int(_BURST_S * 10)):
        at_ns = after_ns + (place + 1) * NS_PER_S // 10
        trades: list[FeedItem] = []
        for _ in range(each):
            row += 1
            price *= math.exp(1e-5 * float(rng.normal()))
            trades.append(Trade(at_ns, at_ns, "burst", row, "TICK", price, 100.0))
        made.append(Instant((*trades, TimePassed(at_ns + 1)), (), ()))
    return made
