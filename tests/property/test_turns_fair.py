"""Fairness of turns, on simulated engines: nobody starves, and 32 streams have much the same waits."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.scheduling.config import TurnsConfig
from htfi.scheduling.turns.fair_share import FairScheduler


class Turn(NamedTuple):
    key: int
    tenant: str
    slack_ms: float
    waited_ms: float
    num_tokens: int


class Pace(NamedTuple):
    fixed_ms: float = 0.3
    row_ms: float = 0.07
    token_ms: float = 0.0
    cell_ms: float = 0.056
    prompt_ms: float = 0.08


@dataclass
class _Asked:
    key: int
    tenant: str
    at_ms: float
    deadline_ms: float
    num_left: int
    served_ms: float
    done_ms: float = -1.0


@dataclass
class Engine:
    """One prompt, then a round of all rows, again and again, at the pace of the shipped pair."""

    turns: FairScheduler
    max_rows: int = 16
    num_prompt: int = 90
    now_ms: float = 0.0
    waiting: dict[int, _Asked] = field(default_factory=dict)
    writing: dict[int, _Asked] = field(default_factory=dict)
    finished: list[_Asked] = field(default_factory=list)

    def ask(self, tenant: str, deadline_ms: float = 300.0, num_tokens: int = 16) -> None:
        key = len(self.waiting) + len(self.writing) + len(self.finished)
        self.waiting[key] = _Asked(
            key, tenant, self.now_ms, self.now_ms + deadline_ms, num_tokens, self.now_ms
        )
        self._active()

    def step(self) -> None:
        pace = Pace()
        turn = {
            key: Turn(key, of.tenant, of.deadline_ms - self.now_ms, self.now_ms - of.served_ms, 1)
            for key, of in (self.waiting | self.writing).items()
        }
        if self.waiting and len(self.writing) < self.max_rows:
            key = self.turns.next_joining(
                [turn[key] for key in self.waiting], [turn[key] for key in self.writing], pace
            )
        else:
            key = None
        if key is not None:
            took_ms = pace.prompt_ms * self.num_prompt
            self.now_ms += took_ms
            self.turns.spent([(self.waiting[key].tenant, took_ms)])
            self.writing[key] = self.waiting.pop(key)
        for keys in self.turns.passes([turn[key] for key in self.writing], pace):
            took_ms = pace.fixed_ms + (pace.row_ms + pace.cell_ms) * len(keys)
            self.now_ms += took_ms
            self.turns.spent([(self.writing[key].tenant, took_ms / len(keys)) for key in keys])
            for key in keys:
                of = self.writing[key]
                of.num_left -= 1
                of.served_ms = self.now_ms
                if not of.num_left:
                    of.done_ms = self.now_ms
                    self.finished.append(self.writing.pop(key))
        self._active()

    def _active(self) -> None:
        self.turns.active({of.tenant for of in (self.waiting | self.writing).values()})


def waits_ms(finished: list[_Asked], tenant: str) -> np.ndarray:
    return np.array([of.done_ms - of.at_ms for of in finished if of.tenant == tenant])


def test_no_stream_of_32_waits_more_than_twice_as_long_as_the_median_stream():
    seed = 11
    rng = np.random.Generator(np.random.PCG64(seed))
    engine = Engine(FairScheduler())
    names = [f"edge{i}" for i in range(32)]
    due = {name: float(rng.uniform(0.0, 300.0)) for name in names}
    while len(engine.finished) < 1_500:
        for name in names:  # each edge asks anew some time after its answer
            if due[name] <= engine.now_ms and not any(
                of.tenant == name for of in (engine.waiting | engine.writing).values()
            ):
                engine.ask(name)
                due[name] = engine.now_ms + float(rng.exponential(30.0))
        if engine.waiting or engine.writing:
            engine.step()
        else:
            engine.now_ms = min(due.values())
    p95 = [float(np.quantile(waits_ms(engine.finished, name), 0.95)) for name in names]
    assert max(p95) <= 2.0 * float(np.median(p95)), p95


def test_edge_with_one_request_is_not_starved_by_one_with_thirty():
    engine = Engine(FairScheduler(), max_rows=8)
    for _ in range(30):
        engine.ask("greedy")
    for _ in range(3):
        engine.step()
    for _ in range(10):
        engine.ask("modest")
        while not waits_ms(engine.finished, "modest").size or any(
            of.tenant == "modest" for of in (engine.waiting | engine.writing).values()
        ):
            while sum(of.tenant == "greedy" for of in engine.waiting.values()) < 30:
                engine.ask("greedy")
            engine.step()
    assert waits_ms(engine.finished, "modest").max() < 0.5 * np.median(waits_ms(engine.finished, "greedy"))


@given(
    data=st.data(),
    num_tenants=st.integers(1, 4),
    slacks_ms=st.lists(st.sampled_from([-1e6, 0.0, 5.0, 300.0, 1e12]), min_size=1, max_size=12),
)
@settings(max_examples=examples(60), deadline=None)
def test_every_request_joins_within_a_bound_whatever_else_comes(
    data: st.DataObject, num_tenants: int, slacks_ms: list[float]
):
    config = TurnsConfig(patience_ms=200.0)
    engine = Engine(FairScheduler(config), max_rows=4)
    for at, slack_ms in enumerate(slacks_ms):
        engine.ask(f"edge{at % num_tenants}", slack_ms, 4)
    first = set(engine.waiting)
    for _ in range(400):  # something urgent comes with every step, from whoever is fiercest
        engine.ask(f"edge{data.draw(st.integers(0, num_tenants - 1))}", 0.0, 4)
        engine.step()
        first -= set(engine.writing) | {of.key for of in engine.finished}
        if not first:
            return
    raise AssertionError(f"{len(first)} of {len(slacks_ms)} never joined")


@given(
    widths=st.lists(st.integers(1, 20), min_size=1, max_size=40),
    used=st.lists(st.floats(0.0, 1e4), min_size=5, max_size=5),
    max_rows=st.integers(1, 40),
)
def test_every_ready_row_goes_exactly_once_a_round(widths: list[int], used: list[float], max_rows: int):
    turns = FairScheduler(TurnsConfig(max_rows=max_rows))
    turns.active({f"edge{i}" for i in range(5)})
    turns.spent([(f"edge{i}", ms) for i, ms in enumerate(used)])
    ready = [Turn(key, f"edge{key % 5}", 100.0, 0.0, width) for key, width in enumerate(widths)]
    groups = turns.passes(ready, Pace())
    assert sorted(key for group in groups for key in group) == list(range(len(widths)))
    assert max(map(len, groups)) <= max_rows
