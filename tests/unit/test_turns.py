"""Turns at an engine: who is admitted, who joins next, which rows go together, how many guesses are read."""

from typing import NamedTuple

import pytest

from htfi.domain.errors import InvalidInput
from htfi.scheduling.config import MIN_RETRY_MS, TurnsConfig
from htfi.scheduling.turns.fair_share import (
    admission_retry_ms,
    best_verify_depth,
    charge_usage,
    choose_next_request,
    group_into_passes,
    lift_idle_counters,
    predicted_finish_ms,
    predicted_pass_ms,
)

CONFIG = TurnsConfig()


class Turn(NamedTuple):
    key: int
    tenant: str = "a"
    slack_ms: float = 500.0
    waited_ms: float = 0.0
    num_tokens: int = 1


class Pace(NamedTuple):
    fixed_ms: float = 0.3
    row_ms: float = 0.07
    token_ms: float = 0.0
    cell_ms: float = 0.056
    prompt_ms: float = 0.08


def test_who_used_least_goes_first_and_among_equals_who_has_least_slack():
    waiting = [Turn(1, "a", 10.0), Turn(2, "b", 300.0), Turn(3, "b", 200.0)]
    assert choose_next_request({"a": 100.0, "b": 20.0}, waiting, [], Pace(), CONFIG) == 3
    assert choose_next_request({"a": 22.0, "b": 20.0}, waiting, [], Pace(), CONFIG) == 1  # within the grace
    assert choose_next_request({}, [], [], Pace(), CONFIG) is None


def test_who_can_still_be_in_time_goes_before_who_is_late_already():
    assert choose_next_request({}, [Turn(1, slack_ms=-5.0), Turn(2, slack_ms=900.0)], [], Pace(), CONFIG) == 2


def test_tolerant_request_is_not_passed_over_for_ever():
    patient = Turn(1, slack_ms=1e9, waited_ms=1_001.0)
    assert choose_next_request({}, [patient, Turn(2, slack_ms=0.0)], [], Pace(), CONFIG) == 1


def test_prompt_waits_while_reading_it_would_make_others_late():
    tight, loose = Turn(8, "b", slack_ms=3.0), Turn(9, "b", slack_ms=30.0)
    asks = Turn(1, "a", slack_ms=100.0, num_tokens=90)  # 7 ms to read
    assert choose_next_request({}, [asks], [loose], Pace(), CONFIG) == 1
    assert choose_next_request({}, [asks], [loose, tight], Pace(), CONFIG) is None
    assert (
        choose_next_request({}, [asks._replace(slack_ms=2.0)], [tight], Pace(), CONFIG) == 1
    )  # it can wait even less
    assert (
        choose_next_request({}, [asks], [tight._replace(slack_ms=-1.0)], Pace(), CONFIG) == 1
    )  # late anyway
    assert choose_next_request({"b": 50.0}, [asks], [tight], Pace(), CONFIG) == 1  # the other has had more
    assert choose_next_request({}, [asks._replace(waited_ms=2_001.0)], [tight], Pace(), CONFIG) == 1


def test_idle_tenant_saves_up_no_rights_and_what_it_used_is_not_forgiven():
    accounts = charge_usage({}, [("busy", 500.0), ("once", 700.0), ("busy", 100.0)])
    after = lift_idle_counters(accounts, {"busy", "new"})
    assert after == {"busy": 600.0, "once": 700.0, "new": 600.0}
    assert lift_idle_counters(charge_usage(after, [("busy", 200.0), ("new", 200.0)]), {"busy", "new"}) == {
        "busy": 800.0,
        "new": 800.0,
    }


def test_rows_of_unlike_width_go_apart_where_padding_would_cost_more():
    pace = Pace()
    narrow = [Turn(key) for key in range(16)]
    wide = [Turn(key, num_tokens=9) for key in range(16, 32)]
    groups = group_into_passes([*narrow, *wide], pace, {}, CONFIG)
    assert sorted(map(sorted, groups)) == [list(range(16)), list(range(16, 32))]
    assert predicted_pass_ms(pace, 16, 1) + predicted_pass_ms(pace, 16, 9) < predicted_pass_ms(pace, 32, 9)
    assert len(group_into_passes([Turn(1), Turn(2, num_tokens=3)], pace, {}, CONFIG)) == 1


def test_pass_has_no_more_rows_than_it_may_and_every_row_goes_once():
    ready = [Turn(key, tenant=str(key % 3), num_tokens=1 + key % 4) for key in range(50)]
    groups = group_into_passes(ready, Pace(), {}, TurnsConfig(max_rows=8))
    assert max(map(len, groups)) <= 8
    assert sorted(key for group in groups for key in group) == list(range(50))
    assert group_into_passes([], Pace(), {}, CONFIG) == []


def test_fewer_guesses_are_read_in_company_and_fewer_where_they_seldom_stand():
    pace = Pace()
    alone, crowded = best_verify_depth(1, 40, 0.96, pace), best_verify_depth(32, 40, 0.96, pace)
    assert 0 < crowded < alone
    assert best_verify_depth(1, 40, 0.3, pace) < alone
    assert best_verify_depth(1, 3, 0.99, pace) == 3
    assert best_verify_depth(1, 0, 0.9, pace) == 0


def test_small_backlog_is_done_before_a_large_one_that_came_first():
    backlog = {"large": 10_000.0, "other": 20.0}
    assert predicted_finish_ms(30.0, 5.0, "small", backlog) == 30.0 + 30.0 + 20.0
    assert predicted_finish_ms(30.0, 200.0, "small", {}) == 200.0


def test_request_that_would_be_late_is_told_when_to_ask_again():
    backlog = {"a": 300.0}
    config = TurnsConfig()
    assert admission_retry_ms(20.0, 20.0, "a", 481.0, backlog, {}, config) is None
    assert admission_retry_ms(20.0, 20.0, "a", 250.0, backlog, {}, config) == pytest.approx(230.0)
    assert admission_retry_ms(20.0, 20.0, "b", 250.0, backlog, {}, config) is None


def test_queue_is_bounded_for_each_and_for_all():
    config = TurnsConfig(max_waiting=5, max_waiting_per_tenant=3)
    assert admission_retry_ms(1.0, 1.0, "a", 1e9, {"a": 300.0}, {"a": 3}, config) == 150.0
    assert admission_retry_ms(1.0, 1.0, "b", 1e9, {}, {"a": 3, "c": 2}, config) == MIN_RETRY_MS
    assert admission_retry_ms(1.0, 1.0, "b", 1e9, {}, {"a": 3, "b": 1}, config) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"max_rows": 0},
        {"patience_ms": 0.0},
        {"patience_ms": float("nan")},
        {"max_waiting": 0},
        {"max_waiting_per_tenant": -1},
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(settings: dict[str, float]):
    with pytest.raises(InvalidInput, match="turns"):
        TurnsConfig(**settings)  # type: ignore[arg-type]
