"""Turns of tenants at what takes long: who is least over its share goes first, and who works is paused for it."""

import asyncio

import pytest

from htfi.library.serving.answer_turns import AnswerTurns, choose_running, drained
from htfi.scheduling.turns.fair_share import UsageCounters, charge_usage

EVEN = {"flood": 1.0, "quiet": 1.0}


class _Work:
    """Notes what is done to it."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name, self._log = name, log

    def pause(self) -> None:
        self._log.append(f"pause {self._name}")

    def resume(self) -> None:
        self._log.append(f"resume {self._name}")


def test_who_is_least_over_its_share_is_chosen() -> None:
    assert choose_running({"a": 900.0, "b": 10.0}, ["a", "b", "c"], [], 1) == {"c"}
    assert choose_running({"a": 900.0, "b": 10.0}, ["a", "b", "c"], [], 2) == {"b", "c"}


def test_near_equals_do_not_displace_each_other() -> None:
    assert choose_running({"a": 15.0}, ["a", "b"], ["a"], 1) == {"a"}
    assert choose_running({"a": 25.0}, ["a", "b"], ["a"], 1) == {"b"}


def test_use_within_the_share_is_forgotten_and_debt_is_bounded() -> None:
    assert drained({"a": 30.0, "b": 12.5}, 12.5) == {"a": 17.5}
    assert drained({"a": 1e9}, 100.0) == {"a": 4_900.0}


def test_tenant_that_asks_half_its_share_never_waits_for_one_that_asks_always() -> None:
    share_ms, slice_ms, counters = 0.5 * 25.0, 25.0, dict[str, float]()
    waited, running = 0, set[str]()
    for k in range(4_000):
        wanting = ["flood", "quiet"] if k % 4 == 0 else ["flood"]  # 25 ms of every 100
        running = choose_running(counters, wanting, running, 1)
        waited += "quiet" in wanting and "quiet" not in running
        counters = drained(charge_usage(counters, [(name, slice_ms) for name in running]), share_ms)
    assert waited <= 1


def test_quiet_tenant_displaces_one_that_asks_always() -> None:
    log: list[str] = []

    async def scene() -> None:
        turns = AnswerTurns(EVEN, num_at_once=1)
        entered = asyncio.Event()

        async def flood() -> None:
            async with turns.turn("flood", _Work("flood", log)):
                entered.set()
                await asyncio.sleep(0.2)
                log.append("flood done")

        flooding = asyncio.ensure_future(flood())
        await entered.wait()
        await asyncio.sleep(0.05)
        async with turns.turn("quiet", _Work("quiet", log)):
            log.append("quiet begins")
        await flooding

    asyncio.run(scene())
    assert log == ["pause flood", "quiet begins", "resume flood", "flood done"]


def test_two_that_ask_always_share_by_their_weights() -> None:
    weights = {"a": 4.0, "b": 1.0}
    counters: UsageCounters = {}
    num = dict.fromkeys(weights, 0)
    running: set[str] = set()
    for _ in range(2_000):
        running = choose_running(counters, weights, running, 1)
        (name,) = running
        num[name] += 1
        counters = drained(charge_usage(counters, [(name, 25.0 / weights[name])]), 25.0 / 5.0)
    assert num["a"] / num["b"] == pytest.approx(4.0, rel=0.1)


def test_turn_that_is_given_up_while_it_waits_leaves_nothing() -> None:
    async def scene() -> list[str]:
        log: list[str] = []
        turns = AnswerTurns(EVEN, num_at_once=1)
        async with turns.turn("a", _Work("a", log)):
            waiting = asyncio.ensure_future(_entered(turns, "b", log))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        async with turns.turn("b", _Work("b", log)):
            log.append("b")
        return log

    assert asyncio.run(scene()) == ["b"]


async def _entered(turns: AnswerTurns, name: str, log: list[str]) -> None:
    async with turns.turn(name, _Work(name, log)):
        log.append(name)
