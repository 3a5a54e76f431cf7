"""What `htfi forecast` prints for an answer."""

import pytest

from htfi.apps.cli.forecast.answer import ForecastAnswer, answer_lines
from htfi.library.charts.fan import format_price


def answer_of(decisions) -> ForecastAnswer:
    return ForecastAnswer(
        decision=decisions[-1],
        prices=[decision.last_price for decision in decisions],
        scores=[],
        num_events=len(decisions),
        quarantine={},
        others=[f"S{k}/1d" for k in range(20)],
    )


def text(answer, width=100) -> str:
    return "\n".join(line.plain for line in answer_lines(answer, width))


@pytest.mark.parametrize("width", [80, 120])
def test_lines_keep_to_the_width(make_decisions, width):
    assert max(len(line.plain) for line in answer_lines(answer_of(make_decisions(60)), width)) <= width


def test_a_kept_back_forecast_is_not_told(make_decisions):
    answer = answer_of(make_decisions(60, withhold_every=60))
    assert answer.withheld
    shown = text(answer)
    assert "Policy withholds this forecast: too wide." in shown
    assert "median" not in shown
    assert answer.decision.rationale.text not in shown
    assert not {"forecast", "rationale"} & set(answer.plain())


def test_prices_in_the_table_are_those_of_the_quantiles(make_decisions):
    decision = make_decisions(60)[-1]
    words = text(answer_of([decision]))
    low, high = decision.forecast.quantiles[0][1], decision.forecast.quantiles[0][-2]
    for value in (low, high):
        assert format_price(decision.last_price * 2.718281828459045**value) in words


def test_many_other_series_are_counted(make_decisions):
    assert "and 8 more; choose with --symbol" in " ".join(text(answer_of(make_decisions(3))).split())
