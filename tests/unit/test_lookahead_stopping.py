"""Stopping a draft by entropy: what is learnt, and that no token has a say in whether it is drawn."""

import inspect
from itertools import pairwise

import numpy as np
import pytest

from htfi.decoding.draft_length.stopping import EntropyStop, Stopping, Threshold
from htfi.domain.errors import InvalidInput


def drafts(num, seed=13, length=8):
    """Entropies, and acceptance that falls with them: e^(−H/2)."""
    rng = np.random.default_rng(seed)
    for _ in range(num):
        entropies = rng.choice([0.05, 0.4, 1.0, 2.3], length)
        right = rng.random(length) < np.exp(-entropies / 2)
        yield entropies.tolist(), int(np.argmin([*right, False]))


def test_survival_by_entropy_is_learnt_and_falls():
    stop = EntropyStop()
    for entropies, accepted in drafts(3000):
        stop.learn(entropies, accepted)
    for entropy in (0.05, 0.4, 1.0, 2.3):
        assert stop.survives(entropy) == pytest.approx(np.exp(-entropy / 2), abs=0.05)
    rates = [stop.survives(entropy) for entropy in np.linspace(0, 8, 81)]
    assert all(after <= before for before, after in pairwise(rates))


def test_drafts_go_on_where_sure_and_stop_where_not():
    stop = EntropyStop()
    for entropies, accepted in drafts(3000):
        stop.learn(entropies, accepted)
    assert stop.goes_on([0.05] * 4, 0.5)
    assert not stop.goes_on([0.05, 2.3], 0.5)
    assert not stop.goes_on([1.0, 1.0, 0.05], 0.5)  # who comes too seldom is not waited for


def test_stopping_pays_where_doubt_is_uneven():
    """Tokens per ms with a draft step at a tenth of a pass: learnt stopping against the best fixed length."""
    pass_ms, step_ms = 1.0, 0.1
    stop = EntropyStop()
    for entropies, accepted in drafts(2000, seed=1):
        stop.learn(entropies, accepted)
    trial = list(drafts(4000, seed=2))

    def rate(length_of):
        tokens = ms = 0.0
        for entropies, accepted in trial:
            length = length_of(entropies)
            tokens += 1 + min(accepted, length)
            ms += pass_ms + step_ms * length
        return tokens / ms

    def learnt(entropies):
        length = 0
        while length < len(entropies) and stop.goes_on(entropies[: length + 1], 0.2):
            length += 1
        return length

    fixed = max(rate(lambda entropies, k=k: min(k, len(entropies))) for k in range(9))
    assert rate(learnt) > 1.03 * fixed


def test_a_threshold_looks_at_the_place_to_come_alone():
    stop = Threshold(1.0)
    stop.learn([5.0], 1)
    assert stop.goes_on([3.0, 0.9], 0.99)
    assert not stop.goes_on([0.1, 1.1], 0.0)


@pytest.mark.parametrize("kind", [EntropyStop, Threshold, Stopping])
def test_the_decision_is_given_no_token(kind):
    assert list(inspect.signature(kind.goes_on).parameters) == ["self", "entropies_nats", "hurdle"]


def test_settings_out_of_range_are_refused():
    for make in (lambda: Threshold(float("nan")), lambda: EntropyStop(prior_weight=0.0)):
        with pytest.raises(InvalidInput, match="stopping"):
            make()
