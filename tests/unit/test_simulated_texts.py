"""The texts that models are trained on are the same for ever: the shipped weights were learned from them."""

import hashlib
from itertools import islice

import pytest

from htfi_train.simulation.attacks import honest, injections, pumps
from htfi_train.simulation.corpus import training_passages
from htfi_train.simulation.rng import Rng
from htfi_train.simulation.stories import stories


def digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def headlines(seed: int) -> list[str]:
    return [item.headline for story in islice(stories(seed), 500) for item in story.items]


def truths(seed: int) -> list[str]:
    found = [story.truth for story in islice(stories(seed), 500)]
    return [f"{one.direction} {one.cause} {one.situation} {one.standing} {one.rationale}" for one in found]


def passages(seed: int) -> list[str]:
    return [
        f"{int(part.kind)} {part.weight} {getattr(part.segment, 'text', '')}"
        for parts in islice(training_passages(seed), 300)
        for part in parts
    ]


def drawn(module) -> list[str]:
    rng = Rng(5)
    return [module.draw(rng) for _ in range(1000)]


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (lambda: headlines(1), "8278fb9531d6daf8"),
        (lambda: headlines(1_000_000_000), "8faf85adefc5fe7b"),
        (lambda: truths(7), "11012651697ad600"),
        (lambda: passages(3), "eb21e2a7921c600a"),
        (lambda: drawn(injections), "5c42a444fc048120"),
        (lambda: drawn(pumps), "be42a166b14aaeb7"),
        (lambda: drawn(honest), "99f27e581013667e"),
    ],
    ids=["headlines", "evaluation headlines", "truths", "passages", "injections", "pumps", "honest"],
)
def test_simulated_texts_keep_their_bytes(texts, wanted: str) -> None:
    assert digest(texts()) == wanted
