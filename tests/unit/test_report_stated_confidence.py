"""The report sets the confidence that facts stated against the next bar, once for each item and series."""

from itertools import pairwise

import pytest
from msgspec import structs

from htfi.apps.cli.report.stated_confidence import MIN_OUTCOMES, StatedConfidence, stated_html
from htfi.domain.news import ItemReading, NewsContext, NewsItemAudit, ReadingBudget, Route, Screening


def reading(
    direction: int, confidence: float = 0.85, event: str = "rate_decision", earned: float = 0.0
) -> ItemReading:
    return ItemReading(
        event, 0.9, "did", "fact", "", 1.0, 0.5 * direction, direction, 0.6 if direction else 0.0, 1.4, confidence,
        "" if direction else "neither good nor bad", (65,), "effects/2", "facts/2", "reader", earned,
    )  # fmt: skip


def with_items(decision, **readings: ItemReading):
    items = tuple(
        NewsItemAudit(
            name, "wire", decision.as_of_ns, Screening.PASS, 1.0, (), 1, None, Route.TARGET, "", reading=one
        )
        for name, one in readings.items()
    )
    return structs.replace(decision, news_context=NewsContext(items, (), ReadingBudget(250.0, 250.0)))


def fed(decisions) -> StatedConfidence:
    stated = StatedConfidence()
    for one in decisions:
        stated.bar_closed(one.series, one.last_price)
        stated.add(one)
    return stated


def test_each_item_counts_once_against_the_bar_after_it_was_first_considered(make_decisions):
    decisions = make_decisions(8)
    moved = [after.last_price > before.last_price for before, after in pairwise(decisions)]
    up = with_items(decisions[2], a=reading(1), silent=reading(0), b=reading(1, event="jobs"))
    again = with_items(decisions[3], a=reading(1, earned=0.25))
    stated = fed([*decisions[:2], up, again, *decisions[4:]])
    assert (stated.whole.num, stated.whole.num_instants) == (2, 1)
    assert stated.whole.num_right == 2 * moved[2]
    assert {kind: found.num for kind, found in stated.kinds.items()} == {"rate_decision": 1, "jobs": 1}
    assert stated.earned == {"rate_decision": 0.25, "jobs": 0.0}
    assert [found.num for found in stated.bins] == [0, 0, 0, 2, 0]


def test_what_no_bar_has_followed_and_amendments_count_for_nothing(make_decisions):
    decisions = make_decisions(4)
    last = with_items(decisions[-1], a=reading(1))
    amended = structs.replace(with_items(decisions[1], b=reading(1)), amends=decisions[1].id)
    stated = fed([*decisions[:2], amended, decisions[2], last])
    assert stated.whole.num == 0
    assert stated_html(stated) == ""


def test_shares_are_given_only_of_enough_instants(make_decisions):
    decisions = make_decisions(MIN_OUTCOMES + 2)
    sure = [with_items(one, **{f"n{place}": reading(1, 0.95)}) for place, one in enumerate(decisions)]
    few, enough = fed(sure[:5]), fed(sure)
    assert few.points() == []
    assert "Too few outcomes to draw" in stated_html(few)
    assert "of 4</td><td>too few</td>" in stated_html(few)
    ((confidence, share, low, high),) = enough.points()
    rises = [one.last_price < other.last_price for one, other in pairwise(decisions)]
    assert (confidence, share) == (0.95, pytest.approx(sum(rises) / len(rises), abs=1e-4))
    assert 0.0 <= low < share < high <= 1.0
    html = stated_html(enough)
    assert '<div id="stated"' in html
    assert f"<td>{share:.0%}</td>" in html
