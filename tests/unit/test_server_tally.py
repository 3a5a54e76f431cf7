"""Whom a cloud served, and whom it refused."""

from htfi.decoding.link.frames import RefusalReason
from htfi.decoding.link.server.streams import TenantAccounts


def test_answers_and_refusals_are_counted_for_whom_they_were() -> None:
    tally = TenantAccounts()
    for took_ms in range(1, 101):
        tally.record_answer("edge1", 20, float(took_ms))
    tally.record_answer("edge2", 5, 7.0)
    tally.record_refusal("edge2", RefusalReason.BUSY)
    one, two = tally.accounts["edge1"], tally.accounts["edge2"]
    assert (one.num_answers, one.num_tokens, one.num_refused, one.p95_ms) == (100, 2000, 0, 96.0)
    assert (two.num_answers, two.num_refused, two.p95_ms) == (1, 1, 7.0)
    assert tally.refused == {"busy": 1}


def test_names_without_end_take_no_room_without_end() -> None:
    tally = TenantAccounts()
    for number in range(5_000):
        tally.record_refusal(f"edge{number}", RefusalReason.MALFORMED)
    assert len(tally.accounts) == 1024
    assert "edge4999" in tally.accounts
    assert tally.refused.total() == 5_000


def test_nobody_has_a_time_before_an_answer() -> None:
    tally = TenantAccounts()
    tally.record_refusal("edge1", RefusalReason.DRAINING)
    assert tally.accounts["edge1"].p95_ms is None
