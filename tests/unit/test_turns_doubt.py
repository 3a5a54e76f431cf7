"""Work under suspicion goes behind others' and is never shut out."""

from typing import NamedTuple

import pytest

from htfi.scheduling.config import SUSPECTED_SHARE, TurnsConfig
from htfi.scheduling.turns.fair_share import (
    FairScheduler,
    PendingReading,
    charge_with_suspicion,
    penalise_suspects,
    reading_order,
)

CONFIG = TurnsConfig()


class Turn(NamedTuple):
    key: int
    tenant: str
    slack_ms: float = 500.0
    waited_ms: float = 0.0
    num_tokens: int = 1


class Pace(NamedTuple):
    fixed_ms: float = 0.3
    row_ms: float = 0.07
    token_ms: float = 0.0
    cell_ms: float = 0.056
    prompt_ms: float = 0.08


def test_tenant_in_doubt_joins_behind_others_and_its_rows_go_in_later_passes():
    turns = FairScheduler(TurnsConfig(max_rows=1))
    both = [Turn(1, "suspected", 10.0), Turn(2, "honest", 300.0)]
    assert turns.next_joining(both, [], Pace()) == 1  # it has less slack
    turns.suspect({"suspected": 1.0})
    assert turns.next_joining(both, [], Pace()) == 2
    assert turns.passes(both, Pace()) == [[2], [1]]
    assert turns.next_joining(both[:1], [], Pace()) == 1  # alone it is served as ever
    turns.suspect({})
    assert turns.next_joining(both, [], Pace()) == 1


@pytest.mark.parametrize(("doubt", "share"), [(0.0, 0.5), (0.5, 0.2857), (1.0, 0.2)])
def test_tenant_in_doubt_gets_its_smaller_share_for_as_long_as_both_want_the_engine(
    doubt: float, share: float
):
    turns, served = FairScheduler(), {"suspected": 0, "honest": 0}
    turns.suspect({"suspected": doubt})
    for _ in range(20_000):
        waiting = [Turn(1, "suspected"), Turn(2, "honest")]
        key = turns.next_joining(waiting, [], Pace())
        tenant = waiting[key - 1].tenant if key else ""
        served[tenant] += 1
        turns.spent([(tenant, 1.0)])
    assert served["suspected"] / 20_000 == pytest.approx(share, abs=0.01)


def test_doubt_outside_of_its_range_is_bounded():
    assert dict(charge_with_suspicion([("a", 2.0)], {"a": 7.0})) == {"a": 2.0 / SUSPECTED_SHARE}
    assert penalise_suspects({"a": 1.0}, {"b": -3.0}) == {"a": 1.0, "b": 0.0}


def test_news_in_doubt_are_read_after_others_that_have_waited_as_long():
    waiting = [
        PendingReading(0, False, 50, 1.0),
        PendingReading(1, False, 50),
        PendingReading(2, True, 10),
        PendingReading(3, False, 60),
    ]
    assert reading_order(waiting, now_ns=100) == [1, 3, 0, 2]


def test_news_in_doubt_are_read_first_once_they_have_waited_several_times_as_long():
    waiting = [PendingReading(0, False, 0, 1.0), PendingReading(1, False, 900)]
    assert reading_order(waiting, now_ns=1_000) == [0, 1]
    assert reading_order([waiting[0], PendingReading(1, False, 600)], now_ns=1_000) == [1, 0]


def test_without_doubt_the_order_is_that_of_waiting():
    waiting = [PendingReading(place, False, read_ns) for place, read_ns in enumerate((30, 10, 20, 10))]
    assert reading_order(waiting, now_ns=100) == [1, 3, 2, 0]
