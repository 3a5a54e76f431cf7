"""Turns of tenants at what takes long: who used least lately goes first, and who works is paused for it."""

import asyncio
from collections.abc import Mapping

import pytest

from htfi.library.serving.answer_turns import AnswerTurns, choose_running, decayed
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


def test_who_used_least_is_chosen() -> None:
    assert choose_running({"a": 900.0, "b": 10.0}, ["a", "b", "c"], [], 1) == {"c"}
    assert choose_running({"a": 900.0, "b": 10.0}, ["a", "b", "c"], [], 2) == {"b", "c"}


def test_near_equals_do_not_displace_each_other() -> None:
    assert choose_running({"a": 15.0}, ["a", "b"], ["a"], 1) == {"a"}
    assert choose_running({"a": 25.0}, ["a", "b"], ["a"], 1) == {"b"}


def test_use_is_forgotten_in_seconds() -> None:
    assert decayed({"a": 30.0}, 0.0) == {"a": 30.0}
    assert decayed({"a": 30.0, "b": 0.01}, 1_386.3) == {"a": pytest.approx(15.0, rel=1e-3)}
    assert decayed({"a": 1e4}, 60_000.0) == {}


def waits_of_quiet(flood: list[bool], quiet: list[bool], weights: Mapping[str, float]) -> tuple[int, int]:
    """Slices of 25 ms in which each wants a turn; how often the quiet one wanted it, and how often it waited."""
    counters: UsageCounters = {}
    wanted = waited = 0
    running = set[str]()
    for k in range(4_000):
        wanting = [name for name, when in (("flood", flood), ("quiet", quiet)) if when[k % len(when)]]
        running = choose_running(counters, wanting, running, 1)
        wanted += "quiet" in wanting
        waited += "quiet" in wanting and "quiet" not in running
        counters = charge_usage(decayed(counters, 25.0), [(name, 25.0 / weights[name]) for name in running])
    return wanted, waited


@pytest.mark.parametrize(
    "flood",
    [[True], [True, False], [False, True, True, True, False, False, False]],
    ids=["always", "half of the time", "within its share"],
)
def test_tenant_that_asks_seldom_never_waits_for_one_that_asks_more(flood: list[bool]) -> None:
    """Also where both want less than half: who used less goes first, not who came first."""
    wanted, waited = waits_of_quiet(flood, [True, False, False, False, False, False, False, False], EVEN)
    assert wanted == 500
    assert waited <= 1  # before there is anything to go by


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
        counters = charge_usage(decayed(counters, 25.0), [(name, 25.0 / weights[name])])
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
