"""How long each placement takes to generate an answer, in expectation over which guesses are accepted. Pure.

The first j guesses of a draft are accepted with chance a_j, so it ends at place j with h_j = a_(j−1) − a_j,
and the target's own token takes that place. From there all begins again: with T(m) the expected time of m
more tokens, T follows by recursion over places. Beyond some places it is a straight line.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil
from operator import mul
from typing import NamedTuple

EXACT_PLACES = 48
_NEVER_MS = 1e9


class DecodingTime(NamedTuple):
    """ms of drafting and verifying until the last token, `rounds` of guesses, `edge_ms` of drafting at the edge."""

    ms: float
    rounds: float
    edge_ms: float


@lru_cache(maxsize=256)
def survival_and_hazards(curve: tuple[float, ...], num_places: int) -> tuple[list[float], list[float]]:
    """a_0 … a_n and h_1 … h_n (h_0 is 0); beyond the curve's end its last rate continues."""
    alive = [1.0]
    for place in range(num_places):
        if place < len(curve):
            alive.append(min(max(curve[place], 0.0), alive[-1]))
        else:
            before = curve[-2] if len(curve) > 1 else 1.0
            alive.append(alive[-1] * (min(curve[-1] / before, 1.0) if curve and before > 0.0 else 0.0))
    return alive, [0.0] + [alive[j] - alive[j + 1] for j in range(num_places)]


def lockstep_time(
    num_tokens: int, window: int, curve: tuple[float, ...], draft_ms: float, pass_ms: Sequence[float]
) -> DecodingTime:
    """Draft a window, verify it, repeat: lock-step, whose every round costs an RTT beside, or a draft at the target.

    `pass_ms[g]`: of verifying g guesses, which accepts up to g + 1 tokens. A window is no longer than tokens are left.
    """
    exact = min(num_tokens, EXACT_PLACES)
    alive, hazard = survival_and_hazards(curve, window)
    ms, rounds = [0.0], [0.0]
    for left in range(1, exact + 1):
        g = min(window, left - 1)
        after = range(left - 1, left - 1 - g, -1)
        took = g * draft_ms + pass_ms[g] + alive[g] * ms[left - g - 1]
        more = 1.0 + alive[g] * rounds[left - g - 1]
        for j, rest in enumerate(after, 1):
            took += hazard[j] * ms[rest]
            more += hazard[j] * rounds[rest]
        ms.append(took)
        rounds.append(more)
    total_rounds = _extrapolate(rounds, num_tokens)
    return DecodingTime(
        _extrapolate(ms, num_tokens), total_rounds, total_rounds * min(window, num_tokens) * draft_ms
    )


def pipelined_time(
    num_tokens: int,
    window: int,
    in_flight: int,
    curve: tuple[float, ...],
    rtt_ms: float,
    draft_ms: float,
    pass_ms: Sequence[float],
    lead_ms: float,
) -> DecodingTime:
    """Windows back to back; the target continues plainly where none fits.

    A run begins where a guess was rejected: the edge is informed, drafts again, and its first window is back RTT + its
    drafting later. Until then the target continues plainly, and each of its tokens is one at which the run may fail as
    well. `lead_ms`: when the first run's drafting reaches the cloud, counted from the prompt's end there (it may be
    negative); the first token is accepted by then. Source: docs/decisions/d03-placement.md.
    """
    exact = min(num_tokens, EXACT_PLACES)
    alive, hazard = survival_and_hazards(curve, exact)
    again = _RunTimeline(exact, 0, rtt_ms, window, in_flight, rtt_ms, draft_ms, pass_ms)
    ms = [0.0]
    for left in range(1, exact + 1):
        ms.append(_expected_ms(left, again, alive, hazard, ms))
    first = _RunTimeline(exact, 1, lead_ms, window, in_flight, rtt_ms, draft_ms, pass_ms)
    total = _expected_ms(exact, first, alive, hazard, ms)
    if num_tokens > exact:
        total += _extrapolate(ms, num_tokens) - ms[exact]
    runs = 1.0 + num_tokens * (1.0 - alive[exact] ** (1.0 / exact))
    # thrown away with each run that fails: what was drafted during a trip, or until the answer's end
    ahead = min(in_flight * window, rtt_ms / max(draft_ms, 1e-6) + window, num_tokens / 2)
    return DecodingTime(total, runs, (num_tokens + (runs - 1.0) * ahead) * draft_ms)


def windows_to_cover_trip(window: int, rtt_ms: float, draft_ms: float, verify_ms: float) -> int:
    """Windows in flight that keep the target busy for a round trip."""
    bottleneck = max(window * draft_ms, verify_ms, 1e-6)
    return 1 + ceil((rtt_ms + window * draft_ms + verify_ms) / bottleneck)


def best_verify_window(curve: tuple[float, ...], pass_ms: Sequence[float]) -> int:
    """How many of the guesses that have come a target reads at once: most tokens for a pass's ms."""
    alive, _ = survival_and_hazards(curve, len(pass_ms))
    best, best_rate, tokens = 1, 0.0, 1.0
    for depth in range(1, len(pass_ms)):
        tokens += alive[depth]
        if tokens / pass_ms[depth] > best_rate:
            best, best_rate = depth, tokens / pass_ms[depth]
    return best


class _RunTimeline:
    """The passes of one run of accepted guesses: when the pass that accepts a place begins, and after which place."""

    __slots__ = ("accepted_before", "begins_ms", "ends_ms", "pass_ms")

    def __init__(
        self,
        num_places: int,
        num_accepted: int,
        lead_ms: float,
        window: int,
        in_flight: int,
        rtt_ms: float,
        draft_ms: float,
        pass_ms: Sequence[float],
    ) -> None:
        self.pass_ms = pass_ms
        self.begins_ms = [0.0] * (num_places + 1)
        self.ends_ms = [0.0] * (num_places + 1)  # index: place, from 1
        self.accepted_before = [0] * (num_places + 1)
        now, accepted, arrived = 0.0, num_accepted, 0
        next_ms = lead_ms + window * draft_ms
        while accepted < num_places:
            while next_ms <= now and arrived * window < num_places:
                arrived += 1
                # the next window is drafted after this one, and not before a window in flight is free
                last_free = (arrived + 1 - in_flight) * window
                freed = self._accepted_ms(last_free, accepted) + rtt_ms if last_free > 0 else next_ms
                next_ms = max(next_ms, freed) + window * draft_ms
            guesses = 0
            if arrived * window > accepted:
                guesses = min(arrived * window - accepted, num_places - accepted, len(pass_ms) - 1)
            end = now + pass_ms[guesses]
            for place in range(accepted + 1, min(accepted + guesses + 1, num_places) + 1):
                self.begins_ms[place], self.ends_ms[place], self.accepted_before[place] = now, end, accepted
            accepted += guesses + 1
            if next_ms >= _NEVER_MS:
                last_free = (arrived + 1 - in_flight) * window
                if last_free <= accepted:
                    next_ms = end + rtt_ms + window * draft_ms
            now = end

    def _accepted_ms(self, place: int, accepted: int) -> float:
        return self.ends_ms[place] if place <= accepted else _NEVER_MS


def _expected_ms(
    left: int, run: _RunTimeline, alive: list[float], hazard: list[float], after_ms: list[float]
) -> float:
    """Of `left` tokens in a run: it ends at j < left and another begins, or lasts."""
    before = run.accepted_before[left]
    if left <= before:
        return 0.0
    # the last pass is no longer than it need be, whether or not its guesses are accepted
    last_ms = run.begins_ms[left] + run.pass_ms[min(left - before - 1, len(run.pass_ms) - 1)]
    took = alive[before] * min(last_ms, run.ends_ms[left])
    took += sum(map(mul, hazard[1 : before + 1], run.ends_ms[1 : before + 1]))
    return took + sum(map(mul, hazard[1:left], after_ms[left - 1 : 0 : -1]))


def _extrapolate(by_place: list[float], num_tokens: int) -> float:
    """A value that is known up to some place, continued at the slope of its latter half."""
    known = len(by_place) - 1
    if num_tokens <= known:
        return by_place[num_tokens]
    half = known // 2
    return by_place[known] + (num_tokens - known) * (by_place[known] - by_place[half]) / max(known - half, 1)


def best_window(price: Callable[[int], float], widest: int) -> int:
    """The cheapest window; prices fall and then rise, so the search ends after two that are dearer."""
    best, best_price, worse = 1, price(1), 0
    for window in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256):
        if window > widest or worse == 2:
            break
        now = price(window)
        if now < best_price:
            best, best_price, worse = window, now, 0
        else:
            worse += 1
    return best
