"""`htfi eval venue`: the simulated venue's queue held against orders whose fate is recorded, and what it leaves out.

A day of order messages at the best prices (LOBSTER, level 1) names each order, so its wait is known. Every order of
others that joins a best price is entered once more, as one of ours, at the same instant behind what is displayed, and
follows the same quotes and trades until the recorded order is filled or deleted, or its price is no longer the best:
what happens away from the best price is not in such data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.orders import TimeInForce
from htfi.domain.time import NS_PER_S
from htfi.library.charts.specs import BarChart, Chart, DotChart, DotGroup
from htfi.simulation.venue.book import RestingOrder, SimulatedBook
from htfi_eval.commands import ProgressLine, data_option, output_options
from htfi_eval.eval.prices import STAGED, read_rows
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation

FILE = "hf/lobster_amzn_20120621_l1.parquet"
NEW, CANCEL, DELETE, EXECUTED = 1, 2, 3, 4
QUEUES = ((0, 0), (1, 100), (101, 300), (301, 10**9))  # shares ahead
SIZES = ((1, 50), (51, 100), (101, 300), (301, 10**9))  # shares taken at once
IMPACT_S = 10.0
_COLUMNS = (
    "ts",
    "event_type",
    "order_id",
    "size",
    "price",
    "direction",
    "bid",
    "bid_size",
    "ask",
    "ask_size",
)

_EPILOG = """\b
Examples:
  htfi eval venue --html build/venue.html
  htfi eval venue messages.parquet
"""


@dataclass(frozen=True, slots=True, eq=False)
class OrderMessages:
    """A day of messages [T] and the best prices after each, in cents; `direction` is 1 where a bid is concerned."""

    at_ns: NDArray[np.int64]
    kind: NDArray[np.int64]
    order_id: NDArray[np.int64]
    size: NDArray[np.int64]
    price: NDArray[np.int64]
    direction: NDArray[np.int64]
    bid: NDArray[np.int64]
    bid_size: NDArray[np.int64]
    ask: NDArray[np.int64]
    ask_size: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FollowedOrder:
    """One recorded order and its double at the simulated venue. Waits in nanoseconds, None where it was not filled."""

    ahead: int  # displayed when it came
    size: int
    recorded_wait_ns: int | None
    simulated_wait_ns: int | None
    seen_ns: int  # how long it was followed


@click.command("venue", short_help="The simulated venue's queue against recorded orders.", epilog=_EPILOG)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@data_option
@output_options
def command(file: Path | None, data: Path | None, html_file: Path | None, json_file: Path | None) -> None:
    """Enter recorded orders once more at the simulated venue, and compare whether and when they are filled.

    FILE is a table of LOBSTER's messages at level 1 with the best prices after each: ts, event_type, order_id, size,
    price, direction, bid, bid_size, ask, ask_size. Without it the staged day of AMZN is used.
    """
    path = file or (data or STAGED) / FILE
    messages = read_messages(path)
    progress = ProgressLine(path.stem)
    followed = follow_orders(messages, progress)
    if not followed:
        raise InvalidInput(f"{path}: no order joins a best price: nothing can be compared")
    impact = measure_impact(messages)
    result = Evaluation(name="venue", title="The simulated venue against recorded orders", metrics={})
    result.rows = [_queue_row(queue, _in_queue(followed, queue)) for queue in QUEUES]
    result.metrics = _metrics(followed, impact)
    result.charts = _charts(followed, impact)
    share, simulated = (_share(followed, name) for name in ("recorded_wait_ns", "simulated_wait_ns"))
    result.lead = (
        f"Of {len(followed):,} orders that joined a best price, {share:.1%} were filled while it was the best; the "
        f"simulated venue fills {simulated:.1%} of their doubles."
    )
    result.cards = [
        Card(f"{share:.1%}", "filled, as recorded"),
        Card(f"{simulated:.1%}", "filled by the simulated venue"),
        Card(f"{_agreement(followed):.1%}", "of orders have the same fate in both"),
        Card(
            f"{impact[-1][2]:+.1f} bp",
            f"after {IMPACT_S:g} s, of what takes more than {SIZES[-1][0] - 1} shares",
        ),
    ]
    result.notes = [
        "what is cancelled ahead of an order is not known to the simulated venue, which sees best prices only: its "
        "doubles wait longer, so that fills come no sooner than they would have",
        "orders are followed while their price is the best: beyond that these data do not tell; hidden orders, other "
        "venues and the queue of a price that becomes the best later are not in them either",
        "impact is how far the middle moved after recorded orders that took at once; orders at the simulated venue "
        "move nothing, so large ones look that much cheaper than they would be",
    ]
    write_outputs(result, json_file=json_file, html_file=html_file)


def read_messages(path: Path) -> OrderMessages:
    """Raises: DependencyUnavailable, InvalidInput."""
    if not path.exists():
        raise DependencyUnavailable(
            f"{path} does not exist: name a file of messages, or the staged data with --data"
        )
    rows = read_rows(path)
    missing = [name for name in _COLUMNS if name not in rows]
    if missing:
        raise InvalidInput(
            f"{path} has no column {missing[0]}: LOBSTER's messages with best prices are expected"
        )
    whole: dict[str, Any] = {
        name: rows[name].astype(np.int64)
        for name in ("order_id", "size", "direction", "bid_size", "ask_size")
    }
    cents = {
        name: np.round(rows[name].astype(np.float64) * 100).astype(np.int64)
        for name in ("price", "bid", "ask")
    }
    at_ns = rows["ts"].astype("datetime64[ns]").astype(np.int64)
    return OrderMessages(at_ns=at_ns, kind=rows["event_type"].astype(np.int64), **whole, **cents)


def follow_orders(messages: OrderMessages, progress: ProgressLine | None = None) -> list[FollowedOrder]:
    """Every order that joined or made a best price, with what became of it and of its double."""
    return [
        _follow(messages, place, sign)
        for place, sign in _joining(messages, progress)
    ]  # fmt: skip


def _joining(messages: OrderMessages, progress: ProgressLine | None) -> Iterator[tuple[int, int]]:
    num = len(messages.at_ns)
    for place in np.flatnonzero(messages.kind == NEW).tolist():
        if progress is not None and place % 1_000 < 2:
            progress(place, num)
        sign = int(messages.direction[place])
        best = messages.bid if sign > 0 else messages.ask
        if (
            place
            and int(messages.price[place]) == int(best[place])
            and messages.bid[place] < messages.ask[place]
        ):
            yield place, sign


def _follow(messages: OrderMessages, place: int, sign: int) -> FollowedOrder:
    """Feed the double what came after, until the recorded order's fate is known or its price is not the best."""
    name, price, begin_ns = (int(each[place]) for each in (messages.order_id, messages.price, messages.at_ns))
    size = int(messages.size[place])
    best, shown = (messages.bid, messages.bid_size) if sign > 0 else (messages.ask, messages.ask_size)
    book = SimulatedBook()
    before = place - 1
    _ = list(book.quote(*_quote(messages, before), int(messages.at_ns[before])))
    double = RestingOrder("double", sign, price, 1, begin_ns, TimeInForce.DAY)
    _ = list(book.add(double))
    ahead = max(0, int(shown[place]) - size)
    recorded: int | None = None
    simulated: int | None = None
    at_ns = begin_ns
    for later in range(place + 1, len(messages.at_ns)):
        at_ns, kind = int(messages.at_ns[later]), int(messages.kind[later])
        is_it = int(messages.order_id[later]) == name
        if kind == EXECUTED and int(messages.direction[later]) == sign:
            matches = list(book.trade(int(messages.price[later]), int(messages.size[later]), at_ns))
            if matches and simulated is None:
                simulated = at_ns - begin_ns
            if is_it and recorded is None:
                recorded = at_ns - begin_ns
        if kind == DELETE and is_it:
            break
        if int(best[later]) != price or (recorded is not None and simulated is not None):
            break
    return FollowedOrder(ahead, size, recorded, simulated, at_ns - begin_ns)


def _quote(messages: OrderMessages, place: int) -> tuple[int, int, int, int]:
    return (
        int(messages.bid[place]),
        int(messages.bid_size[place]),
        int(messages.ask[place]),
        int(messages.ask_size[place]),
    )


def measure_impact(messages: OrderMessages) -> list[tuple[str, int, float, float]]:
    """By shares taken at once: name, how many, the mean move of the middle after it in its favour, its error; bp."""
    took = np.flatnonzero(messages.kind == EXECUTED)
    middle = (messages.bid + messages.ask) / 2
    new_order = np.ones(len(took), np.bool_)
    new_order[1:] = (np.diff(messages.at_ns[took]) > 0) | (np.diff(messages.direction[took]) != 0)
    first = np.flatnonzero(new_order)
    shares = np.add.reduceat(messages.size[took], first) if len(first) else np.zeros(0)
    at = took[first]
    later = np.searchsorted(messages.at_ns, messages.at_ns[at] + round(IMPACT_S * NS_PER_S), side="right") - 1
    before = middle[np.maximum(at - 1, 0)]
    moved = -messages.direction[at] * (middle[later] - before) / before * 1e4  # who takes a bid sells
    found: list[tuple[str, int, float, float]] = []
    for low, high in SIZES:
        chosen = moved[(shares >= low) & (shares <= high)]
        error = float(chosen.std(ddof=1) / len(chosen) ** 0.5) if len(chosen) > 1 else 0.0
        found.append(
            (_range_name(low, high), len(chosen), float(chosen.mean()) if len(chosen) else 0.0, error)
        )
    return found


def _in_queue(followed: Sequence[FollowedOrder], queue: tuple[int, int]) -> list[FollowedOrder]:
    return [one for one in followed if queue[0] <= one.ahead <= queue[1]]


def _queue_row(queue: tuple[int, int], chosen: Sequence[FollowedOrder]) -> dict[str, Any]:
    waits = [
        (one.recorded_wait_ns, one.simulated_wait_ns)
        for one in chosen
        if one.recorded_wait_ns is not None and one.simulated_wait_ns is not None
    ]
    return {
        "shares ahead": _range_name(*queue),
        "orders": len(chosen),
        "filled, recorded": f"{_share(chosen, 'recorded_wait_ns'):.1%}",
        "filled, simulated": f"{_share(chosen, 'simulated_wait_ns'):.1%}",
        "only recorded": sum(
            one.recorded_wait_ns is not None and one.simulated_wait_ns is None for one in chosen
        ),
        "only simulated": sum(
            one.recorded_wait_ns is None and one.simulated_wait_ns is not None for one in chosen
        ),
        "same fate": f"{_agreement(chosen):.1%}",
        "median wait, recorded": _seconds([one for one, _ in waits]),
        "median wait, simulated": _seconds([one for _, one in waits]),
    }


def _metrics(
    followed: Sequence[FollowedOrder], impact: Sequence[tuple[str, int, float, float]]
) -> dict[str, float | None]:
    return {
        "fill_rate_recorded": _share(followed, "recorded_wait_ns"),
        "fill_rate_simulated": _share(followed, "simulated_wait_ns"),
        "same_fate": _agreement(followed),
        "filled_too_easily": float(
            np.mean([one.recorded_wait_ns is None and one.simulated_wait_ns is not None for one in followed])
        ),
        "impact_largest_bps": impact[-1][2],
    }


def _charts(
    followed: Sequence[FollowedOrder], impact: Sequence[tuple[str, int, float, float]]
) -> list[Chart]:
    by_queue = [_in_queue(followed, queue) for queue in QUEUES]
    return [
        DotChart(
            "Share of orders filled, by what was displayed ahead of them",
            "While their price was the best. Doubles at the simulated venue follow the same quotes and trades.",
            [f"{_range_name(*queue)} ({len(chosen):,})" for queue, chosen in zip(QUEUES, by_queue, strict=True)],
            [
                DotGroup(name, [_share(chosen, field) for chosen in by_queue])
                for name, field in (("recorded", "recorded_wait_ns"), ("simulated", "simulated_wait_ns"))
            ],
            unit="%",
        ),
        BarChart(
            f"Move of the middle {IMPACT_S:g} s after an order that takes, by its size",
            "In its favour, with intervals of 95%. Orders at the simulated venue move nothing.",
            [f"{name} shares ({num:,})" for name, num, _, _ in impact],
            [mean for _, _, mean, _ in impact],
            [mean - 1.96 * error for _, _, mean, error in impact],
            [mean + 1.96 * error for _, _, mean, error in impact],
            unit=" bp",
        ),
    ]  # fmt: skip


def _share(chosen: Sequence[FollowedOrder], field: str) -> float:
    return sum(getattr(one, field) is not None for one in chosen) / len(chosen) if chosen else 0.0


def _agreement(chosen: Sequence[FollowedOrder]) -> float:
    same = sum((one.recorded_wait_ns is None) == (one.simulated_wait_ns is None) for one in chosen)
    return same / len(chosen) if chosen else 0.0


def _seconds(waits: Sequence[int]) -> str:
    return f"{float(np.median(waits)) / NS_PER_S:.3g} s" if waits else "–"


def _range_name(low: int, high: int) -> str:
    if low == high:
        return f"{low}"
    return f"{low}–{high}" if high < 10**9 else f"{low} and more"
