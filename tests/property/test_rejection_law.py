"""Under the rejection rule, chains and trees of any draft give the target's own law; planted errors do not.

Two proofs. By integration, over every draw and every coin at one place: no chance in it, so no false alarm. By
sampling whole texts in rounds from bare tables, against the law of every text written down, with Pearson's χ²:
seeds were fixed beforehand, and FALSE_ALARM bounds how likely a right rule is refused in any of CASES (Bonferroni;
χ² is itself an approximation, with at least 5 expected in each cell). Errors are planted and checked by the same
check; each wrong law is written down too, so the power is worked out, not guessed: above 1 − MISS for each of them.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chi_square import fit, power
from examples import examples
from htfi.decoding.noise import Doubles
from htfi.decoding.rules import rejection
from htfi.decoding.rules.rejection import EntropyAwareRule, SiblingVerdict
from htfi.decoding.sampling import SamplingParams
from rejection_tables import Pair, Speculation, chain, pair, sequence_law, tally, write

FALSE_ALARM = 1e-4
CASES = {
    "chain": (3, SamplingParams(1.0), (), chain(3, 2)),
    "longer chain, cold": (3, SamplingParams(0.5), (), chain(3, 3)),
    "chain, top-k, hot": (4, SamplingParams(1.5, top_k=3), (), chain(2, 2)),
    "chain, top-p": (4, SamplingParams(1.0, top_p=0.8), (), chain(2, 1)),
    "chain under a mask": (5, SamplingParams(0.8), (1, 3), chain(3, 2)),
    "certain tokens": (3, SamplingParams(1.0), (), replace(chain(3, 2), certain=True)),
    "tree": (3, SamplingParams(1.0), (), Speculation(3, (2, 2))),
    "wide tree": (4, SamplingParams(1.2), (), Speculation(2, (4, 2))),
    "tree, top-k and top-p": (5, SamplingParams(1.0, 4, 0.9), (), Speculation(2, (3, 2))),
    "tree under a mask, cold": (6, SamplingParams(0.6), (0, 2), Speculation(2, (2, 3))),
    "certain siblings": (4, SamplingParams(1.0), (), replace(Speculation(2, (2, 2)), certain=True)),
    "length by entropy before drawing": (
        3,
        SamplingParams(1.0),
        (),
        replace(Speculation(3, (2, 1)), goes_on=lambda law: law.max() > 0.55),
    ),
}
RATE = FALSE_ALARM / len(CASES)
MISS = 1e-3
NUM_TEXTS = 1200


def p_value(models: Pair, how: Speculation, num_texts: int, first_seed: int = 0) -> float:
    return fit(tally(models, how, num_texts, first_seed), sequence_law(models, how.length)).p_value


def models_of(name: str) -> Pair:
    num_tokens, sampling, banned, _ = CASES[name]
    return pair(num_tokens, sampling, 100 + list(CASES).index(name), banned)


@pytest.mark.parametrize("name", CASES)
def test_texts_follow_the_targets_law(name: str):
    assert p_value(models_of(name), CASES[name][3], NUM_TEXTS) > RATE


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_many_texts_follow_the_targets_law(name: str):
    assert p_value(models_of(name), CASES[name][3], 20_000, 10_000) > RATE


# By integration

weights = st.lists(st.sampled_from([0.0, 0.01, 0.2, 1.0, 1.0, 3.0, 50.0]), min_size=2, max_size=4).filter(any)


@given(data=st.data(), num_siblings=st.integers(0, 3), certain=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_one_place_has_the_targets_law_to_the_last_digits(
    data: st.DataObject, num_siblings: int, certain: bool
):
    raw = data.draw(weights)
    size = len(raw)
    other = data.draw(
        st.lists(st.sampled_from([0.0, 0.05, 0.5, 1.0, 9.0]), min_size=size, max_size=size).filter(any)
    )
    target, draft = np.array(raw) / sum(raw), np.array(other) / sum(other)
    np.testing.assert_allclose(place_law(target, draft, num_siblings, certain), target, atol=1e-12)


def place_law(
    target: Doubles, draft: Doubles, num_siblings: int, certain: bool = False, told: Doubles | None = None
) -> Doubles:
    """The law of the token at one place: all draws of the siblings, all coins, all redraws.

    `told` is the law given to the rule where it is not that of the draws.
    """
    law = np.zeros(len(target))
    told = None if certain else draft if told is None else told
    num = min(num_siblings, int((draft > 0).sum()))
    for siblings in itertools.permutations(range(len(target)), num):
        reached, rest = 1.0, draft.copy()
        for place in siblings:  # how likely they are drawn in this order
            reached *= rest[place] / rest.sum() if rest.any() else 0.0
            rest[place] = 0.0
        if reached <= 0.0:
            continue
        for index, place in enumerate(siblings):
            chance = share_accepted(target, told, siblings[: index + 1])
            law[place] += reached * chance
            reached *= 1.0 - chance
        if reached > 0.0:
            left = rejection.verify_siblings(target, told, siblings, [HIGHEST] * num).left
            law += reached * left / left.sum()
    return law


HIGHEST = 1.0 - 2.0**-53


def share_accepted(target: Doubles, draft: Doubles | None, siblings: tuple[int, ...]) -> float:
    """Of the last sibling's coins, the fraction that accepts it once those before were refused."""
    before = [HIGHEST] * (len(siblings) - 1)
    low, high = 0.0, 1.0
    if rejection.verify_siblings(target, draft, siblings, [*before, HIGHEST]).taken == len(siblings) - 1:
        return 1.0
    while high - low > 2.0**-50:
        middle = (low + high) / 2
        accepted = (
            rejection.verify_siblings(target, draft, siblings, [*before, middle]).taken == len(siblings) - 1
        )
        low, high = (middle, high) if accepted else (low, middle)
    return low


# Planted errors: texts of two tokens, a draft far from its target (total variation .49 to .82)


@pytest.fixture(scope="module")
def apart() -> Pair:
    return pair(4, SamplingParams(1.0), seed=1, difference=2.0)


def assert_caught(models: Pair, how: Speculation, wrong: Doubles) -> None:
    """Refused as texts of the target, for the reason that was planted, and not by luck."""
    true = sequence_law(models, how.length)
    assert power(wrong, true, NUM_TEXTS, RATE) > 1 - MISS
    counts = tally(models, how, NUM_TEXTS, 0)
    assert fit(counts, true).p_value < RATE
    assert fit(counts, wrong).p_value > RATE


def judge_by_the_wrong_token(target: Doubles, draft: Doubles | None, siblings, flips) -> SiblingVerdict:
    """p of the drafted token, q of its neighbour."""
    assert draft is not None
    if not siblings:
        return SiblingVerdict(-1, target)
    (place,), (flip,) = siblings, flips
    if flip * draft[(place + 1) % len(draft)] < target[place]:
        return SiblingVerdict(0, target)
    return SiblingVerdict(-1, rejection.residual_distribution(target, draft))


def never_excluding(law: Doubles, place: int) -> Doubles:
    return law


def from_the_target_itself(target: Doubles, draft: Doubles) -> Doubles:
    return target


def always_one_to_one(target: float, draft: float, flip: float) -> bool:
    return flip < target


IN_THE_RULE: dict[str, tuple[str, Callable[..., object], int]] = {
    "a redraw from p after a rejected chain": ("residual_distribution", from_the_target_itself, 1),
    "a redraw from p after rejected siblings": ("residual_distribution", from_the_target_itself, 2),
    "p/q of the wrong token": ("verify_siblings", judge_by_the_wrong_token, 1),
    "a tried sibling not excluded": ("without_token", never_excluding, 2),
    "drawn tokens accepted as if certain": ("is_accepted", always_one_to_one, 1),
}


@pytest.mark.parametrize("name", IN_THE_RULE)
def test_an_error_planted_in_the_rule_is_caught(name: str, apart: Pair, monkeypatch: pytest.MonkeyPatch):
    attribute, planted, width = IN_THE_RULE[name]
    how = Speculation(2, (width, width))
    monkeypatch.setattr(rejection, attribute, planted)
    rows = [place_law(p, q, width) for p, q in zip(apart.target, apart.draft, strict=True)]
    assert_caught(apart, how, sequence_law(apart._replace(target=np.array(rows)), 2))


def test_the_law_before_rounding_in_place_of_the_one_drawn_from_is_caught():
    """A draft that draws from its two likeliest tokens and tells its whole law."""
    whole = pair(4, SamplingParams(1.0), seed=1)
    cut = pair(4, SamplingParams(1.0), seed=1, draft_sampling=SamplingParams(1.0, top_k=2))
    assert p_value(cut, chain(2, 2), NUM_TEXTS) > RATE
    rows = [
        place_law(p, drawn, 1, told=told)
        for p, drawn, told in zip(whole.target, cut.draft, whole.draft, strict=True)
    ]
    wrong = sequence_law(whole._replace(target=np.array(rows)), 2)
    assert_caught(cut, replace(chain(2, 2), claimed=whole.draft), wrong)


def test_a_bonus_from_the_law_of_the_place_before_is_caught(apart: Pair):
    first = apart.target[-1]
    stays = np.minimum(first, apart.draft[-1])
    wrong = stays[:, None] * first + (first - stays)[:, None] * apart.target[:-1]
    assert_caught(apart, replace(chain(2, 1), lags=True), wrong.ravel())


def test_discarding_a_drawn_token_for_its_low_probability_is_caught(apart: Pair):
    """Anticipation: the same draft is right when its length is decided from the law before drawing (see CASES)."""
    rows = []
    for target, draft in zip(apart.target, apart.draft, strict=True):
        share_kept = draft[draft > 0.4].sum()
        known = np.where(draft > 0.4, draft, 0.0)
        stays = np.minimum(known, np.divide(known * target, draft, where=draft > 0, out=np.zeros(4)))
        refused = known.sum() - stays.sum()
        rows.append(
            stays + refused * rejection.residual_distribution(target, draft) + (1 - share_kept) * target
        )
    wrong = sequence_law(apart._replace(target=np.array(rows)), 2)
    assert_caught(apart, replace(chain(2, 2), keeps=lambda law, place: law[place] > 0.4), wrong)


def test_entropy_aware_rejection_is_lossy_and_exact_where_it_never_doubts(apart: Pair):
    lossy = replace(chain(2, 2), entropy=EntropyAwareRule(0.3, 2, 0.5))
    assert p_value(apart, lossy, NUM_TEXTS) < RATE
    exact = replace(chain(2, 2), entropy=EntropyAwareRule(np.log(4), 2, 0.5))
    assert tally(apart, exact, 300, 0) == tally(apart, chain(2, 2), 300, 0)


def test_texts_repeat_to_the_token_and_change_with_the_seed(apart: Pair):
    how = Speculation(6, (2, 2, 1))
    texts = [write(apart, how, seed) for seed in range(30)]
    assert texts == [write(apart, how, seed) for seed in range(30)]
    assert len(set(texts)) > 20


def test_at_temperature_0_every_draft_gives_the_greedy_text():
    models = pair(5, SamplingParams(0.0), seed=3)
    greedy = [int(models.target[-1].argmax())]
    while len(greedy) < 6:
        greedy.append(int(models.target[greedy[-1]].argmax()))
    for how in (chain(6, 3), Speculation(6, (3, 2)), replace(chain(6, 2), certain=True), chain(6, 0)):
        assert write(models, how, 1) == tuple(greedy)
