"""Survival of drafts by place: learnt from censored rounds, by kind, with what others show as a prior."""

import json
from itertools import pairwise

import numpy as np
import pytest

from htfi.decoding.draft_length.acceptance_curve import AcceptanceCurves
from htfi.domain.errors import InvalidInput


def rounds(rates, num, length, seed=7):
    rng = np.random.default_rng(seed)
    for _ in range(num):
        accepted = 0
        while accepted < length and rng.random() < rates[accepted]:
            accepted += 1
        yield length, accepted


def teach(survival, kind, rates, num, length, seed=7):
    for drafted, accepted in rounds(rates, num, length, seed):
        survival.learn(kind, drafted, accepted)


def test_curve_of_a_steady_draft_is_found_place_by_place():
    rates = [0.95, 0.9, 0.6, 0.9, 0.8, 0.7]
    survival = AcceptanceCurves(max_places=6, memory_rounds=2000)
    teach(survival, "view", rates, 3000, 6)
    assert survival.curve("view") == pytest.approx(np.cumprod(rates).tolist(), abs=0.03)


def test_short_drafts_do_not_speak_against_longer_ones():
    survival = AcceptanceCurves(max_places=8)
    for _ in range(300):
        survival.learn("view", 2, 2)  # all accepted: what lay beyond was not tried
    curve = survival.curve("view")
    assert curve[1] > 0.97
    assert curve[7] > 0.6  # taken for like the kind's own places
    assert all(late <= early for early, late in pairwise(curve))


def test_a_new_kind_is_taken_for_like_the_others_and_then_learnt():
    survival = AcceptanceCurves(max_places=4)
    teach(survival, "view", [0.9] * 4, 400, 4)
    assert survival.curve("path") == pytest.approx([0.9**j for j in range(1, 5)], abs=0.06)
    teach(survival, "path", [0.3] * 4, 60, 4)
    assert survival.curve("path")[0] == pytest.approx(0.3, abs=0.12)
    assert survival.curve("view")[0] == pytest.approx(0.9, abs=0.05)


def test_drift_is_followed_within_the_memory():
    survival = AcceptanceCurves(max_places=4, memory_rounds=50)
    teach(survival, "view", [0.95] * 4, 500, 4)
    teach(survival, "view", [0.4] * 4, 150, 4)
    assert survival.curve("view")[0] == pytest.approx(0.4, abs=0.1)


def test_rounds_without_a_draft_say_nothing():
    survival = AcceptanceCurves()
    before = survival.curve("view")
    survival.learn("view", 0, 0)
    assert survival.curve("view") == before


def test_survival_goes_on_from_its_saved_state():
    survival = AcceptanceCurves(max_places=5)
    teach(survival, "view", [0.9, 0.8, 0.7, 0.6, 0.5], 100, 5)
    teach(survival, "", [0.5] * 5, 10, 5)
    again = AcceptanceCurves(max_places=5)
    again.restore(json.loads(json.dumps(survival.state())))
    for kind in ("view", "", "other"):
        assert again.curve(kind) == survival.curve(kind)


@pytest.mark.parametrize("state", [{}, {"": [1, [1.0], [1.0]]}, {"": 3}, [], {"": [1, ["x"] * 5, [0.0] * 5]}])
def test_a_foreign_state_is_refused_in_one_line(state):
    with pytest.raises(InvalidInput, match="saved state"):
        AcceptanceCurves(max_places=5).restore(state)


def test_settings_out_of_range_are_refused():
    with pytest.raises(InvalidInput, match="prior_rate"):
        AcceptanceCurves(prior_rate=1.0)
