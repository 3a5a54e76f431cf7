"""What statements proved to mean is measured on stories, kept beside the model, and bounded however wrong it is."""

from itertools import islice

import msgspec
import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.narrative.answer import UNCALIBRATED
from htfi.narrative.view_calibration import (
    MAX_SHIFT_SIGMAS,
    MAX_STRETCH,
    NUM_MOVE_FEATURES,
    NUM_WIDTH_FEATURES,
    ViewCalibration,
    move_features,
    width_features,
)
from htfi.wiring.models.loading import read_meaning, read_trust, write_trust
from htfi_eval.eval.narrative.moments import NewsQuestion
from htfi_eval.eval.narrative.simulated import ideal_view, log_returns, questions, world_prices
from htfi_train.simulation.reader_calibration import SEED, fit_meaning
from htfi_train.simulation.simulated_market import DECAY, simulate_market
from htfi_train.simulation.stories import stories, stories_of_market

VIEW = ideal_view(-2.0, 1.5, 0)


def made(shift: float, stretch: float, horizons: tuple[int, ...] = (1, 4)) -> ViewCalibration:
    row = (shift,) * NUM_MOVE_FEATURES
    return ViewCalibration(
        horizons,
        tuple(tuple(value * place for value in row) for place in range(1, len(horizons) + 1)),
        ((stretch,) + (0.0,) * (NUM_WIDTH_FEATURES - 1),) * len(horizons),
    )


def test_a_view_shifts_by_its_effect_and_between_horizons_by_their_logs() -> None:
    meaning = made(0.25, 0.1)
    assert [meaning.shift_sigmas(VIEW, h) for h in (1, 2, 4, 50)] == pytest.approx([-0.5, -0.75, -1.0, -1.0])
    assert meaning.stretch(VIEW, 3) == pytest.approx(np.exp(0.1))


def test_no_coefficient_moves_or_stretches_a_forecast_without_bound() -> None:
    wild = made(1e6, 50.0)
    assert wild.shift_sigmas(VIEW, 1) == -MAX_SHIFT_SIGMAS
    assert wild.stretch(VIEW, 1) == pytest.approx(MAX_STRETCH)


@pytest.mark.parametrize(
    "broken",
    [
        {"horizons": (4, 1)},
        {"horizons": ()},
        {"shifts": ((0.1,),) * 2},
        {"shifts": ((-0.1,) * NUM_MOVE_FEATURES,) * 2},
        {"stretches": ((float("nan"),) * NUM_WIDTH_FEATURES,) * 2},
    ],
)
def test_a_broken_meaning_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="meaning"):
        msgspec.convert({**msgspec.to_builtins(made(0.1, 0.1)), **broken}, ViewCalibration)


def test_one_who_understands_is_believed_and_one_who_guesses_is_not() -> None:
    told = list(islice(stories(SEED), 1_200))
    wise = [
        ideal_view(story.truth.likeliest * story.truth.likely_sigmas, story.truth.volatility_multiplier, 0)
        for story in told
    ]
    dice = np.random.Generator(np.random.PCG64(4))
    idle = [wise[place] for place in dice.permutation(len(wise)).tolist()]
    believed, doubted = fit_meaning(told, wise), fit_meaning(told, idle)
    up = ideal_view(3.0, 1.4, 0)
    assert believed.shift_sigmas(up, 5) > 1.5
    assert believed.shift_sigmas(up, 1) < believed.shift_sigmas(up, 5)  # it lands over some bars
    assert abs(doubted.shift_sigmas(up, 5)) < 0.4
    assert believed.stretch(ideal_view(0.0, 1.0, 0), 5) < believed.stretch(up, 5)


def test_too_few_stories_are_refused() -> None:
    with pytest.raises(InvalidInput, match="stories"):
        fit_meaning(list(islice(stories(SEED), 50)), [VIEW] * 50)


def test_meaning_is_kept_beside_trust_in_the_models_folder(tmp_path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert read_meaning(tmp_path) is None
    meaning = made(0.25, 0.1)
    write_trust(tmp_path, UNCALIBRATED, meaning)
    assert read_meaning(tmp_path) == meaning
    write_trust(tmp_path, UNCALIBRATED)
    assert read_meaning(tmp_path) == meaning
    assert read_trust(tmp_path) == UNCALIBRATED
    (tmp_path / "config.json").write_text('{"htfi_meaning": {"horizons": [1]}}')
    with pytest.raises(InvalidInput, match="htfi_meaning"):
        read_meaning(tmp_path)


def test_what_prices_say_of_the_news_changes_what_is_read_off_a_view() -> None:
    against = msgspec.structs.replace(VIEW, consistency="against", cause="earnings")
    assert sum(move_features(against)) == 2 * sum(move_features(VIEW)) == -4.0
    assert width_features(against)[-1] == 1.0
    assert width_features(VIEW)[-1] == 0.0


def test_prices_of_a_world_scale_back_to_what_it_tells() -> None:
    world = simulate_market(SEED, 3)
    closes = world_prices([world]).close
    moved = np.diff(np.log(closes), axis=0, prepend=np.log(100.0))
    variance = np.full(closes.shape[1], 0.01**2)
    for bar in range(len(moved)):
        assert moved[bar] / np.sqrt(variance) == pytest.approx(world.scaled[bar], abs=1e-6)
        variance = DECAY * variance + (1.0 - DECAY) * np.square(moved[bar])
    assert log_returns(world.scaled) == pytest.approx(moved, abs=1e-9)


def test_worlds_are_asked_as_stories_are_told_and_stand_side_by_side() -> None:
    def told(asked: list[NewsQuestion]) -> set[tuple[str, ...]]:
        return {tuple(item.headline for item in one.question.items) for one in asked}

    one, two = simulate_market(SEED, 0), simulate_market(SEED, 1)
    asked = questions([one])
    as_stories = stories_of_market(SEED, 0)
    assert told(asked) == {tuple(item.headline for item in story.items) for story in as_stories}
    by_words = {tuple(i.headline for i in s.items) + s.context: s for s in as_stories}
    for found in asked:
        story = by_words[tuple(item.headline for item in found.question.items) + found.question.context]
        assert story.truth.likeliest == np.sign(found.truth.expected)
        ages = [
            (found.question.as_of_ns - i.available_at_ns) / found.question.bar_ns
            for i in found.question.items
        ]
        assert ages == pytest.approx(story.ages_bars, abs=0.006)
    prices = world_prices([simulate_market(SEED, 0), two])
    assert len(prices.symbols) == len(one.assets) + len(two.assets)
    assert questions([two])[0].place + len(one.assets) == questions([one, two])[len(asked)].place
