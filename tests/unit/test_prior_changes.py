"""Figures beside the ones before them: which is the earlier, and whether the change is good for the company."""

import pytest

from htfi.narrative.facts.figures import figures_in_context
from htfi.narrative.facts.prior_changes import PriorChange, changes_among
from htfi.narrative.facts.surprises import find_surprises


def changes(text: str) -> list[PriorChange]:
    return changes_among(text, figures_in_context(text))


@pytest.mark.parametrize(
    ("text", "actual", "prior", "is_good"),
    [
        ("Its gross margin was 31.2%, compared to 33.9% a year earlier.", 31.2, 33.9, False),
        ("Net sales rose to EUR 12.4 mn from EUR 11.8 mn.", 12.4e6, 11.8e6, True),
        ("Net loss shrank to $3.1 million from $8.8 million.", -3.1e6, -8.8e6, True),
        ("Net loss widened to $8.8 million from $3.1 million", -8.8e6, -3.1e6, False),
        (
            "Operating loss totalled EUR 2 mn, compared to a profit of EUR 5 mn in the same quarter.",
            -2e6,
            5e6,
            False,
        ),
        ("It posted a net profit of $40 million versus a loss of $12 million last year", 40e6, -12e6, True),
        ("Revenue fell from $5.1 bln to $4.4 bln", 4.4e9, 5.1e9, False),
        ("Operating costs dropped to $210 million from $260 million", 210e6, 260e6, True),
        ("Order intake was SEK 900 million, up from SEK 750 million", 900e6, 750e6, True),
        ("Return on equity was 9.1 %, compared to 12.4 % in the previous year", 9.1, 12.4, False),
        ("Cash flow was EUR 2.5 mn, compared to a negative EUR 0.8 mn in 2008", 2.5e6, -0.8e6, True),
        (
            "Net profit was 30 mln euro ($ 39 mln), compared to 33 mln euro ($ 43 mln) a year ago",
            30e6,
            33e6,
            False,
        ),
        ("Operating profit excluding one-off costs grew to EUR 44 mn from EUR 31 mn", 44e6, 31e6, True),
    ],
)
def test_figure_is_compared_with_the_one_before_it(text: str, actual: float, prior: float, is_good: bool):
    found = changes(text)
    assert [one.is_good for one in found] == [is_good]
    assert (found[0].actual, found[0].prior) == pytest.approx((actual, prior))


@pytest.mark.parametrize(
    "text",
    [
        "Revenue was $5.1 billion versus $4.9 billion expected",
        "Profit is expected to rise to $5 million from $4 million",
        "It cut 300 jobs in 2012, while sales were 40 million",
        "Sales rose 5% from 3% growth a year earlier",  # rates of growth are no levels
        "EPS was EUR0 .29, down from EUR0 .40 a year ago",  # figures cut by a blank
        "Pretax profit was $5.00 million, compared to $5.01 million a year ago",  # hardly a change
        "Costs fell by 20 million, compared to 15 million last year",
        "Shares rose to $20 from $18",
    ],
)
def test_what_is_no_earlier_figure_is_left_alone(text: str):
    assert changes(text) == []


def test_an_earlier_figure_is_no_expectation():
    for text in (
        "Its gross margin was 31.2%, compared to 33.9% a year earlier.",
        "ROI was 5.0 % compared to 9.0 % in the corresponding period",
    ):
        assert all(one.expected is None for one in find_surprises(text))
