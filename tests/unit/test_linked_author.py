"""The author whose target is elsewhere: whatever the weather, each question gets its target's answer, at last."""

import pytest

from htfi.decoding.link.frames import Lead
from htfi.domain.writing import Refusal, Request, Writing
from linked_world import VIEW, Scene, question


def expected(scene: Scene, requests: list[Request]) -> list[tuple[int, ...]]:
    found = scene.target.write(requests)
    assert all(isinstance(answer, Writing) for answer in found), found
    return [answer.tokens for answer in found if isinstance(answer, Writing)]


def written(scene: Scene, requests: list[Request]) -> list[Writing]:
    answers = scene.author.write(requests)
    assert not [answer for answer in answers if isinstance(answer, Refusal)], answers
    return [answer for answer in answers if isinstance(answer, Writing)]


@pytest.mark.parametrize("lead", list(Lead))
@pytest.mark.parametrize("rtt_ms", [0.0, 20.0, 200.0])
def test_an_answer_is_the_targets_in_every_mode(lead: Lead, rtt_ms: float):
    scene = Scene(lead, rtt_ms=rtt_ms)
    requests = [question(seed) for seed in range(4)] + [question(9, VIEW)]
    answers = written(scene, requests)
    assert [answer.tokens for answer in answers] == expected(scene, requests)
    assert all(answer.num_settled == -1 for answer in answers)
