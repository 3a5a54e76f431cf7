"""Digests of a model's states: the same to the bit however often computed, others for another model or another text."""

from dataclasses import replace

import numpy as np
import pytest

from htfi import models
from htfi.decoding.forward_pass import forward_text
from htfi.domain.errors import InvalidInput
from htfi.wiring.models.loading import LoadableModel, open_model

PROMPT, TOKENS = list(range(300, 380)), list(range(400, 420))


@pytest.fixture(scope="module")
def target() -> LoadableModel:
    return open_model(models.TARGET, "int8", "onnx")


def test_digests_are_computed_again_to_the_bit(target: LoadableModel) -> None:
    again = open_model(models.TARGET, "int8", "onnx")
    assert again is not target
    assert target.state_digests(PROMPT, TOKENS) == again.state_digests(PROMPT, TOKENS)


def test_a_changed_model_has_other_states(target: LoadableModel) -> None:
    recorded = target.state_digests(PROMPT, TOKENS)
    for changed in (open_model(models.DRAFT, "int8", "onnx"), replace(target, precision="fp32")):
        found = changed.state_digests(PROMPT, TOKENS)
        assert found.hidden != recorded.hidden
        assert found.attention != recorded.attention


def test_one_token_of_the_prompt_changes_both(target: LoadableModel) -> None:
    recorded, found = target.state_digests(PROMPT, TOKENS), target.state_digests([*PROMPT[:-1], 9], TOKENS)
    assert found.hidden != recorded.hidden
    assert found.attention != recorded.attention


def test_the_network_that_shows_its_states_has_the_logits_of_the_one_that_reads(
    target: LoadableModel,
) -> None:
    ids = np.array([*PROMPT, *TOKENS])
    assert np.array_equal(
        forward_text(target.states_network, ids[None]).logits,  # type: ignore[arg-type]
        forward_text(target.network, ids[None]).logits,
    )
    states = target.states_network.states(ids)
    assert states.hidden.shape == (len(ids), 256)
    assert states.attention.sum(axis=2) == pytest.approx(1.0, abs=1e-5)
    assert not np.triu(states.attention, 1).any()  # nothing attends to what follows


def test_an_engine_that_shows_no_states_is_refused(target: LoadableModel) -> None:
    with pytest.raises(InvalidInput, match=r"states are recorded with models\.engine 'onnx' alone"):
        replace(target, engine="torch").state_digests(PROMPT, TOKENS)
