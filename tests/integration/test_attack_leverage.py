"""Days of the sample lived again: an honest headline moves the forecast, a day of attacks next to nothing."""

import pytest

from htfi_eval.eval.sanitise.attacks import ATTACKS, TAKEN_OVER, honest
from htfi_eval.eval.sanitise.leverage import METRIC, measure


@pytest.mark.slow
def test_attacks_move_less_than_a_twentieth_of_what_honest_news_move() -> None:
    chosen = ("homoglyph", "injection", "burst, 50 a day", "false headline, unconfirmed")
    found = measure(num_closes=3, attacks={name: ATTACKS[name] for name in chosen})
    assert found.metrics[METRIC] < 0.05
    assert [row["attack"] for row in found.rows] == ["an honest headline", *chosen]
    held = {row["attack"]: row["held, %"] for row in found.rows}
    assert held["homoglyph"] == 100.0


@pytest.mark.slow
def test_what_says_the_same_from_the_same_source_moves_as_much_and_silence_nothing() -> None:
    chosen = {"the same": honest, "nothing": lambda _: [], "taken over": TAKEN_OVER["false headline"]}
    found = measure(num_closes=2, attacks=chosen)
    moved = {row["attack"]: row["median, % of honest"] for row in found.rows}
    assert moved["the same"] == 100.0
    assert moved["nothing"] == 0.0
    assert moved["taken over"] == pytest.approx(100.0, abs=1.0)
    assert found.metrics[METRIC] >= 1.0
