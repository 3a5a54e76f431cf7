"""A small world in which an answer is written over a link, event by event: what placement's formulae are compared with.

Whether the edge's guess for a place is right, given all before it, is drawn once for a request, as it is with shared
noise: every way meets the same. Messages keep their order. Times in ms.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from htfi.scheduling.placement.figures import PassCostModel, Placement


@dataclass(frozen=True)
class World:
    """What is true. `jitter_ms` is the mean of an exponential delay on each message, `noise` of a pass's logarithm."""

    rtt_ms: float
    pass_costs: PassCostModel
    draft_ms: float
    cloud_draft_ms: float
    prompt_ms: float
    edge_prompt_ms: float
    rate: float
    num_tokens: int
    num_prompt: int = 90
    queue_ms: float = 0.0
    jitter_ms: float = 0.0
    noise: float = 0.0
    most_guesses: int = 32
    frame_ms: float = 0.0

    @cached_property
    def reading_depth(self) -> int:
        """How many guesses are read at once: most tokens for a pass's time, by what is true."""
        rates = [
            sum(self.rate**place for place in range(depth + 1)) / self.pass_costs.ms(1.0, 1.0 + depth)
            for depth in range(self.most_guesses + 1)
        ]
        return int(np.argmax(rates))

    @cached_property
    def draft_length(self) -> int:
        """How far a draft beside the target guesses: the cloud's own choice, by what is true."""
        rates = [
            sum(self.rate**place for place in range(depth + 1))
            / (self.pass_costs.ms(1.0, 1.0 + depth) + depth * self.cloud_draft_ms)
            for depth in range(1, self.most_guesses + 1)
        ]
        return 1 + int(np.argmax(rates))

    def at(self, rtt_ms: float) -> "World":
        return replace(self, rtt_ms=rtt_ms)

    def one_way_ms(self, rng: np.random.Generator) -> float:
        return self.rtt_ms / 2.0 + (rng.exponential(self.jitter_ms) if self.jitter_ms else 0.0)

    def pass_ms(self, guesses: int, rng: np.random.Generator) -> float:
        return self.pass_costs.ms(1.0, 1.0 + guesses) * (
            float(np.exp(rng.normal(0.0, self.noise))) if self.noise else 1.0
        )


def draw_matches(world: World, rng: np.random.Generator) -> list[bool]:
    return (rng.random(world.num_tokens + 1) < world.rate).tolist()


def request_ms(
    world: World, way: Placement, window: int, in_flight: int, matches: list[bool], rng: np.random.Generator
) -> float:
    """From its opening to its last token at the edge."""
    match way:
        case Placement.CLOUD_PLAIN:
            return _beside(world, 0, 0.0, matches, rng)
        case Placement.CLOUD_SPECULATIVE:
            return _beside(world, world.draft_length, world.cloud_draft_ms, matches, rng)
        case Placement.LOCKSTEP:
            return _lockstep(world, window, matches, rng)
        case Placement.PIPELINED:
            return _Flight(world, window, in_flight, matches, rng).run()
        case Placement.EDGE_ONLY:
            return world.num_prompt * world.edge_prompt_ms + world.num_tokens * world.draft_ms


def _begin_ms(world: World, rng: np.random.Generator) -> float:
    return world.one_way_ms(rng) + world.queue_ms + world.num_prompt * world.prompt_ms


def _settled_by(settled: int, guesses: int, matches: list[bool]) -> int:
    """Places settled after a pass over so many guesses: those that stand, and one more."""
    for place in range(settled + 1, settled + guesses + 1):
        if not matches[place]:
            return place
    return settled + guesses + 1


def _beside(
    world: World, window: int, draft_ms: float, matches: list[bool], rng: np.random.Generator
) -> float:
    now, settled = _begin_ms(world, rng), 1
    while settled < world.num_tokens:
        guesses = min(window, world.num_tokens - settled - 1)
        now += guesses * draft_ms + world.pass_ms(guesses, rng)
        settled = _settled_by(settled, guesses, matches)
    return now + world.one_way_ms(rng)


def _lockstep(world: World, window: int, matches: list[bool], rng: np.random.Generator) -> float:
    n = world.num_tokens
    up = world.num_prompt * world.edge_prompt_ms + min(window, n - 1) * world.draft_ms
    up += world.frame_ms + world.one_way_ms(rng)
    now, settled, base = max(_begin_ms(world, rng), up), 1, 0
    while True:
        guesses = min(base + window, n - 1) - settled
        if (matches[1] or base > 0) and guesses >= 0 and settled < n:
            now += world.pass_ms(guesses, rng)
            settled = _settled_by(settled, guesses, matches)
        now += world.one_way_ms(rng)
        if settled >= n:
            return now
        base = settled
        now += min(window, n - 1 - base) * world.draft_ms + world.frame_ms + world.one_way_ms(rng)


class _Flight:
    """A run of guesses has a number, begins after a settled place, and is wrong from the first place that fails on."""

    def __init__(
        self, world: World, window: int, in_flight: int, matches: list[bool], rng: np.random.Generator
    ) -> None:
        self.world, self.window, self.in_flight, self.matches, self.rng = (
            world,
            window,
            in_flight,
            matches,
            rng,
        )
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.num_events = 0
        self.depth = world.reading_depth
        self.settled = 0  # at the cloud
        self.chain_end = 0  # guesses up to this place have come, of a run that fits
        self.pending: list[tuple[int, int, int]] = []  # windows there: base of their run, begin, end
        self.known = 0  # settled, as the edge knows
        self.base = 0
        self.drafted = 0
        self.sent: list[int] = []  # ends of windows without outcome
        self.is_drafting = False
        self.last_up_ms = self.last_down_ms = 0.0
        self.done_ms = -1.0

    def run(self) -> float:
        self._at(_begin_ms(self.world, self.rng), self._prompt_read)
        self._at(self.world.num_prompt * self.world.edge_prompt_ms, self._draft)
        while self.done_ms < 0.0:
            now, _, act = heapq.heappop(self.events)
            act(now)
        return self.done_ms

    def _at(self, ms: float, act: Callable[[float], None]) -> None:
        self.num_events += 1
        heapq.heappush(self.events, (ms, self.num_events, act))

    # --- the cloud

    def _prompt_read(self, now: float) -> None:
        self._settle(1, now)

    def _settle(self, settled: int, now: float) -> None:
        self.settled = min(settled, self.world.num_tokens)
        self.last_down_ms = max(now + self.world.one_way_ms(self.rng), self.last_down_ms)
        told = self.settled
        self._at(self.last_down_ms, lambda at: self._hear(told, at))
        if self.settled < self.world.num_tokens:
            self._pass(now)

    def _pass(self, now: float) -> None:
        end = self.settled
        for base, begin, last in self.pending:
            fits = all(self.matches[place] for place in range(base + 1, self.settled + 1)) and begin <= end
            if fits and base <= self.settled:
                end = max(end, last)
        guesses = min(end - self.settled, self.world.num_tokens - self.settled - 1, self.depth)
        took = self.world.pass_ms(guesses, self.rng)
        settled = _settled_by(self.settled, guesses, self.matches)
        self._at(now + took, lambda at: self._settle(settled, at))

    def _window_came(self, base: int, begin: int, end: int) -> None:
        self.pending.append((base, begin, end))

    # --- the edge

    def _hear(self, told: int, now: float) -> None:
        self.known = told
        if told >= self.world.num_tokens:
            self.done_ms = now
            return
        wrong = any(not self.matches[place] for place in range(self.base + 1, told + 1))
        if wrong or self.drafted < told:
            self.base = self.drafted = told
            self.sent.clear()
        self.sent = [end for end in self.sent if end > told]
        self._draft(now)

    def _draft(self, now: float) -> None:
        if self.is_drafting or len(self.sent) >= self.in_flight or self.drafted >= self.world.num_tokens - 1:
            return
        self.is_drafting = True
        base, begin = self.base, self.drafted
        end = min(begin + self.window, self.world.num_tokens - 1)
        self._at(
            now + (end - begin) * self.world.draft_ms + self.world.frame_ms,
            lambda at: self._drafted(base, begin, end, at),
        )

    def _drafted(self, base: int, begin: int, end: int, now: float) -> None:
        self.is_drafting = False
        if base == self.base and begin == self.drafted:
            self.drafted = end
            self.sent.append(end)
            self.last_up_ms = max(now + self.world.one_way_ms(self.rng), self.last_up_ms)
            self._at(self.last_up_ms, lambda _: self._window_came(base, begin, end))
        self._draft(now)
