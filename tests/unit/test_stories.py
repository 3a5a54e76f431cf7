"""Stories: the same each time, their labels true to what is shown, their paths true to their labels."""

import math
import warnings
from collections import Counter, defaultdict
from itertools import islice

import numpy as np
import pytest

from checks import nonempty
from htfi.domain.errors import InvalidInput
from htfi_train.simulation.companies import MARKETS
from htfi_train.simulation.headlines.style import MAX_CHARS
from htfi_train.simulation.stories import (
    CONTEXT_BARS,
    FIRST_EVALUATION_SEED,
    PATH_BARS,
    Story,
    stories,
    stories_of_market,
)


@pytest.fixture(scope="module")
def told() -> list[Story]:
    return list(islice(stories(11), 4000))


def test_stories_are_the_same_each_time_and_reached_by_world_number() -> None:
    first = [story for number in (0, 1, 2) for story in stories_of_market(5, number)]
    assert list(islice(stories(5), len(first))) == first
    last = stories_of_market(5, 2)
    assert list(islice(stories(5, 2), len(last))) == last
    assert stories_of_market(6, 2) != last


@pytest.mark.parametrize(("seed", "start"), [(-1, 0), (0, -1)])
def test_a_negative_seed_or_start_is_refused(seed: int, start: int) -> None:
    with pytest.raises(InvalidInput, match="0 or more"):
        next(stories(seed, start))


def test_every_story_has_the_shape_that_it_promises(told: list[Story]) -> None:
    for story in nonempty(told):
        assert len(story.context) == CONTEXT_BARS
        assert len(story.path) == PATH_BARS
        assert all(map(math.isfinite, (*story.context, *story.path)))
        assert len(story.items) == len(story.ages_bars) <= 6
        assert list(story.ages_bars) == sorted(story.ages_bars)
        assert story.ages_bars[0] >= 0.0 if story.items else True
        ids = [item.id for item in story.items]
        assert len(set(ids)) == len(ids)
        assert len(story.truth.cited) <= 2
        assert set(story.truth.cited) <= set(ids)
        assert (story.truth.cause == "none") == (not story.truth.cited)
        assert story.truth.consistency in ("with", "against", "unmoved")


def test_headlines_are_short_and_printable_and_leave_no_grammar_behind(told: list[Story]) -> None:
    for item in nonempty(item for story in told for item in story.items):
        assert 0 < len(item.headline) <= MAX_CHARS
        assert item.headline.isprintable()
        assert item.headline == item.headline.strip()
        assert not set("[]{}<>") & set(item.headline)


def test_rationales_are_one_short_sentence_without_a_digit(told: list[Story]) -> None:
    words = [story.truth.rationale for story in told]
    assert not any(letter.isdigit() for text in words for letter in text)
    assert all(4 <= len(text.split()) <= 14 for text in words), min(words, key=len)
    slots = {part.split("}")[0] for text in words for part in text.split("{")[1:]}
    assert slots <= {"symbol", "size", "direction", "volatility", "confidence"}
    assert len(set(words)) > 1000


def test_directions_balance_and_flaws_come_at_their_rates(told: list[Story]) -> None:
    num = len(told)
    ways = Counter(story.truth.direction for story in told)
    assert abs(ways[1] - ways[-1]) < 0.05 * num  # stories of one event move together, so the bound is wide
    assert 0.3 < ways[0] / num < 0.5
    share = {name: count / num for name, count in Counter(story.truth.situation for story in told).items()}
    fresh = sum(share[name] for name in ("fresh", "against", "official", "denied"))
    assert 0.5 < fresh < 0.72
    assert 0.13 < share["irrelevant"] + share["no news"] < 0.26
    assert 0.1 < sum(share[name] for name in ("priced", "stale", "forged", "denied, unmoved")) < 0.25
    causes = Counter(story.truth.cause for story in told)
    assert set(causes) == {
        "none", "central_bank", "earnings", "guidance", "legal", "supply", "geopolitics", "rumour",
    }  # fmt: skip
    assert min(causes.values()) > 0.04 * num


def test_whoever_reads_the_hidden_event_is_right_as_often_as_confidence_says(told: list[Story]) -> None:
    by_confidence: dict[float, list[bool]] = defaultdict(list)
    for story in told:
        right = story.truth.likeliest == story.truth.direction
        by_confidence[round(story.truth.confidence, 1)].append(right)
    ceiling = np.mean([story.truth.confidence for story in told])
    assert 0.84 < ceiling < 0.91
    # outcomes of one event come together, about three to one: sd of the mean is under 0.008
    assert abs(np.mean([right for rights in by_confidence.values() for right in rights]) - ceiling) < 0.03
    for confidence, rights in by_confidence.items():
        if len(rights) > 400:
            assert abs(np.mean(rights) - confidence) < 0.09


def test_paths_move_by_the_size_and_in_the_direction_of_the_truth(told: list[Story]) -> None:
    moved = [story for story in told if story.truth.direction]
    gain = np.array([story.truth.direction * np.array(story.path) for story in moved])  # [n, H]
    size = np.array([story.truth.size_sigmas for story in moved])
    first = gain[:, :6].sum(axis=1)
    assert np.mean(first > 0) > 0.7
    # later sigmas hold the move itself, so that less than its size is seen in them
    assert 0.6 < first.mean() / size.mean() < 1.1
    big = size > np.quantile(size, 0.75)
    assert first[big].mean() > 1.8 * first[~big].mean()
    flat = np.array([np.array(story.path)[:6].sum() for story in told if not story.truth.direction])
    assert abs(flat.mean()) < 5.0 * flat.std() / math.sqrt(len(flat))
    assert abs(gain[:, 18:].mean()) < 0.08


def test_volatility_of_the_path_rises_with_the_multiplier(told: list[Story]) -> None:
    def spread(low: float, high: float) -> float:
        chosen = [story for story in told if low <= story.truth.volatility_multiplier < high]
        later = np.array([story.path[6:10] for story in chosen])  # after the move itself
        return float(np.median(np.abs(later)))

    assert spread(0.0, 1.05) < spread(1.3, 1.6) < spread(1.8, 4.0)


def test_consistency_is_what_recent_prices_show(told: list[Story]) -> None:
    for story in nonempty(told):
        truth = story.truth
        if truth.situation == "fresh":
            assert max(map(abs, story.context[-4:])) <= 3.1
        if truth.situation == "against":
            jump = max(story.context[-12:], key=abs)
            assert truth.consistency == "against"
            assert abs(jump) > 3.1


def test_size_follows_the_words_of_the_headline(told: list[Story]) -> None:
    def sizes(*words: str) -> list[float]:
        return [
            story.truth.likely_sigmas
            for story in told
            if story.truth.situation == "fresh"
            and any(item.id in story.truth.cited for item in story.items)
            and any(
                word in item.headline.lower()
                for item in story.items
                if item.id in story.truth.cited
                for word in words
            )
        ]

    small, big = sizes("slightly", "marginally", "modest"), sizes("massive", "dramatic", "record", "enormous")
    assert len(small) > 50
    assert len(big) > 20
    assert np.median(big) > 3.0 * np.median(small)


def test_no_company_of_one_seed_is_met_under_another() -> None:
    def companies(seed: int) -> set[str]:
        names = {story.name for story in islice(stories(seed), 1500) if story.name}
        return {name for name in names if " " in name}

    here, there = companies(1), companies(FIRST_EVALUATION_SEED + 1)
    shared = here & there
    markets = {"S&P 500", "Gold futures", "Nikkei 225"}
    assert markets & shared  # what everybody knows is known in every world
    invented = shared - {market.name for market in MARKETS}
    assert len(invented) <= 0.01 * len(here)


@pytest.mark.slow
def test_a_reader_of_loose_words_stays_far_below_the_ceiling() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    sparse = pytest.importorskip("scipy.sparse")

    def page(story: Story) -> str:
        tags = [
            f"tag_{'own' if s == story.symbol else 'other'}" for item in story.items for s in item.symbols
        ]
        asked = [f"asked_{word}" for word in (story.symbol, *story.name.split())]
        return " ".join([*(item.headline for item in story.items), *tags, *asked])

    def moves(story: Story) -> list[float]:
        late = np.array(story.context[-8:])
        return [late[-4:].sum(), late.sum(), late.max(), late.min(), float(np.abs(late).max() > 3.1)]

    train, test = list(islice(stories(21), 20_000)), list(islice(stories(FIRST_EVALUATION_SEED), 4_000))
    bag = text.CountVectorizer(binary=True, min_df=3, token_pattern=r"[^\s]+")
    seen = sparse.hstack([bag.fit_transform(map(page, train)), sparse.csr_matrix([moves(s) for s in train])])
    new = sparse.hstack([bag.transform(map(page, test)), sparse.csr_matrix([moves(s) for s in test])])
    model = linear.LogisticRegression(C=0.15, max_iter=60, tol=1e-2, solver="saga")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit that ends early: it is a yardstick
        model.fit(seen.tocsr(), [story.truth.direction for story in train])
    truth = np.array([story.truth.direction for story in test])
    accuracy = float(np.mean(model.predict(new.tocsr()) == truth))
    ceiling = float(np.mean([story.truth.confidence for story in test]))
    commonest = max(float(np.mean(truth == way)) for way in (-1, 0, 1))
    assert commonest + 0.03 < accuracy < ceiling - 0.12, (commonest, accuracy, ceiling)
    # with the stories' texts dealt out anew nothing is left but the commonest answer
    dealt = new.tocsr()[np.random.default_rng(0).permutation(len(test))]
    assert np.mean(model.predict(dealt) == truth) < commonest + 0.03
