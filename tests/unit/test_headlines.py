"""The grammar of headlines: no wording stands for two meanings, and there are many of each."""

from collections.abc import Callable

import pytest

from checks import nonempty
from htfi_train.simulation.companies import MARKETS, SimulatedAsset, draw_assets, factor_exposure
from htfi_train.simulation.events import NewsEvent
from htfi_train.simulation.headlines import company_news, market_news
from htfi_train.simulation.headlines.grammar import expand, wording
from htfi_train.simulation.headlines.style import write_headline
from htfi_train.simulation.rng import Rng

ALPHA = SimulatedAsset("ALPH", "Alpha Systems", "Alpha Systems", "software")
BETA = SimulatedAsset("BETA", "Beta Foods", "Beta Foods", "food maker")
CAUSES: dict[str, Callable[[Rng], NewsEvent]] = {
    "central bank": market_news.draw_central_bank,
    "commodities": market_news.draw_commodity,
    "earnings": lambda dice: company_news.draw_earnings(dice, ALPHA),
    "correction": lambda dice: company_news.draw_correction(dice, ALPHA)[1],
    "geopolitics": market_news.draw_geopolitics,
    "guidance": lambda dice: company_news.draw_guidance(dice, ALPHA, BETA),
    "legal": lambda dice: company_news.draw_legal(dice, ALPHA, BETA),
    "rumour": lambda dice: company_news.draw_rumour(dice, ALPHA),
    "confirmed": lambda dice: company_news.answered_rumour(dice, ALPHA, confirmed=True)[1],
    "denied": lambda dice: company_news.answered_rumour(dice, ALPHA, confirmed=False)[1],
    "forged": lambda dice: company_news.forged_news(dice, ALPHA),
    "supply": lambda dice: company_news.draw_supply(dice, ALPHA, BETA),
    "trivia": lambda dice: company_news.draw_trivia(dice, ALPHA, BETA),
}


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def test_choices_nest_and_slots_are_filled_and_spaces_made_single() -> None:
    dice = Rng(1)
    seen = {expand("a [b|[c|{x}]|] e", {"x": "[d|{y}]", "y": "f"}, dice) for _ in range(200)}
    assert seen == {"a b e", "a c e", "a d e", "a f e", "a e"}


def test_a_slot_without_a_fact_and_a_bracket_too_many_are_faults() -> None:
    with pytest.raises(KeyError):
        expand("{nothing}", {}, Rng(1))
    with pytest.raises(ValueError, match="outside brackets"):
        expand("a] b", {}, Rng(1))


@pytest.mark.parametrize("cause", CAUSES)
def test_no_wording_means_two_things(cause: str) -> None:
    dice = Rng(3)
    meanings: dict[str, tuple[object, ...]] = {}
    for _ in range(4000):
        event = CAUSES[cause](dice)
        text = wording(event.phrases, event.slots, dice).lower()
        factors = tuple((factor, _sign(size)) for factor, size in event.factors)
        meaning = (_sign(event.own), _sign(event.other), factors, event.grade)
        assert meanings.setdefault(text, meaning) == meaning, text


@pytest.mark.parametrize(
    ("cause", "least"), [(name, 1500) for name in CAUSES if name not in ("confirmed", "denied")]
)
def test_a_cause_has_thousands_of_headlines(cause: str, least: int) -> None:
    dice = Rng(4)
    assets = {ALPHA.symbol: ALPHA, BETA.symbol: BETA}
    forms = {write_headline(CAUSES[cause](dice), assets, dice) for _ in range(3000)}
    assert len(forms) > least


def test_who_wins_and_who_loses_hangs_on_the_order_of_names() -> None:
    dice = Rng(5)
    won = lost = 0
    for _ in range(3000):
        event = company_news.draw_legal(dice, ALPHA, BETA)
        text = wording(event.phrases, event.slots, dice)
        if text.startswith("Alpha Systems wins") and "against Beta Foods" in text:
            assert event.effect_on(ALPHA) > 0 > event.effect_on(BETA)
            won += 1
        if text.startswith("Alpha Systems loses") and "against Beta Foods" in text:
            assert event.effect_on(ALPHA) < 0 < event.effect_on(BETA)
            lost += 1
    assert won
    assert lost


def test_a_rise_that_is_smaller_than_expected_is_bad_and_a_loss_that_is_smaller_is_good() -> None:
    dice = Rng(6)
    rose, fell = {"rose", "climbed", "grew"}, {"fell", "dropped", "declined"}
    seen: set[tuple[bool, bool, bool]] = set()
    for _ in range(8000):
        event = company_news.draw_earnings(dice, ALPHA)
        words = wording(event.phrases, event.slots, dice).replace(",", "").split()
        if event.subkind != "comparison" or not {"profit", "loss"} & set(words):
            continue
        gains, up, more = "profit" in words, bool(rose & set(words)), "more" in words
        if up or fell & set(words):
            assert (event.own > 0) == (gains == (up == more)), words
            seen.add((gains, up, more))
    assert len(seen) == 8


@pytest.mark.parametrize(
    ("factor", "signs"),
    [
        ("oil", {"oil producer": 1, "airline": -1, "software": 0}),
        ("rates USD", {"bank": 1, "utility": -1, "gold": -1, "index USD": -1}),
        ("war", {"defence firm": 1, "airline": -1, "gold": 1, "index EUR": -1}),
    ],
)
def test_common_news_moves_sectors_apart(factor: str, signs: dict[str, int]) -> None:
    for sector, sign in nonempty(signs.items()):
        assert _sign(factor_exposure(SimulatedAsset("X", "X", "X", sector), factor)) == sign


def test_a_currency_pair_turns_with_the_side_that_the_central_bank_is_on() -> None:
    pairs = {market.symbol: market for market in MARKETS if market.base}
    assert factor_exposure(pairs["USDJPY"], "rates USD") > 0 > factor_exposure(pairs["EURUSD"], "rates USD")
    assert factor_exposure(pairs["EURUSD"], "rates EUR") > 0 > factor_exposure(pairs["USDJPY"], "rates JPY")
    assert factor_exposure(pairs["EURGBP"], "rates USD") == 0


def test_tickers_begin_as_names_do_and_differ_within_a_world() -> None:
    for number in range(40):
        assets = draw_assets(Rng(2, number), 8, 4)
        assert len({asset.symbol for asset in assets}) == 12
        for asset in assets[:8]:
            assert 3 <= len(asset.symbol) <= 5
            assert asset.symbol.isalpha()
            assert asset.symbol[0] == next(letter for letter in asset.name.upper() if letter.isalpha())
