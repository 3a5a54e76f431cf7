"""Facts of a passage: what is worked out for a headline alone is what a headline of the same words would have."""

import msgspec
import numpy as np
import pytest

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import FactScores, extract_facts
from htfi.narrative.facts.passages.facts import PassageFacts, read_passage
from htfi.narrative.facts.record import KINDS, ROLES, EventKind, PartyRole

TEXTS = (
    "Alcoa agreed to buy Howmet for $2.3 billion, people familiar with the matter said.",
    "The Federal Reserve cut its policy rate by 25 basis points to 4.25 percent on Wednesday.",
    "Acme Corp sued Widget Inc over patents, and Apple was named as a customer.",
    "Moody's downgraded Ford to junk after deliveries fell 12 percent.",
    "German exports rose.",
    "",
)


def scores_of(text: str, seed: int) -> FactScores:
    """What a network might say, each word a token."""
    generator = np.random.Generator(np.random.PCG64(seed))
    spans, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        spans.append((start, at := start + len(word)))
    num = len(spans)

    def shares(*shape: int) -> np.ndarray:
        return generator.dirichlet(np.full(shape[-1], 0.5), shape[:-1])

    return FactScores(
        event=shares(len(KINDS)),
        tone=shares(3),
        axis=shares(3),
        modality=shares(5),
        tense=shares(3),
        spans=np.array(spans, np.int64).reshape(-1, 2),
        roles=shares(num, len(ROLES) + 1),
        effects=shares(num, 3),
    )


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("seed", range(8))
def test_passage_has_the_facts_that_a_headline_would_have(text: str, seed: int) -> None:
    scores, linker = scores_of(text, seed), EntityLinker({})
    whole = extract_facts(text, scores, linker)
    sent = msgspec.msgpack.encode(read_passage(text, scores, linker))
    found = msgspec.msgpack.decode(sent, type=PassageFacts)
    names = [
        "event", "event_confidence", "axis", "axis_neutral", "tone", "neutral", "tense", "tense_confidence", "relevant",
    ]  # fmt: skip
    assert [getattr(found, name) for name in names] == [getattr(whole, name) for name in names]
    assert found.regions() == whole.regions
    parties = [(one.name, one.start, one.end, one.effect, one.symbols) for one in whole.parties]
    assert [(one.name, one.start, one.end, one.effect, one.symbols) for one in found.parties] == parties
    roles = [role for role, _ in found.roles()]
    assert roles == [one.role for one in whole.parties]
    assert [sure for _, sure in found.roles()] == pytest.approx(
        [one.confidence for one in whole.parties], abs=6e-4
    )


def test_roles_of_a_deal_say_that_an_unsure_passage_reports_one() -> None:
    text = TEXTS[0]
    words = text.split()
    roles = np.full((len(words), len(ROLES) + 1), 0.01)
    roles[:, -1] = 0.9
    for word, role in (("Alcoa", PartyRole.ACQUIRER), ("Howmet", PartyRole.TARGET)):
        roles[words.index(word), -1], roles[words.index(word), ROLES.index(role)] = 0.01, 0.9
    event = np.full(len(KINDS), 0.01)
    event[KINDS.index(EventKind.DEAL)] = 0.3
    scores = scores_of(text, 1)._replace(
        event=event / event.sum(), roles=roles / roles.sum(axis=1, keepdims=True)
    )
    found = read_passage(text, scores, EntityLinker({}))
    assert (found.event, found.event_confidence) == (EventKind.ACQUISITION, 0.6)
