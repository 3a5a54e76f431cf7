"""The heads of facts: read, written, held to their digest; and what extraction makes of their scores."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from htfi import models
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.narrative.config import EncodingConfig
from htfi.narrative.encoding.heads import softmax
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.encoding.products import pooled_states, row_products
from htfi.narrative.facts.axis_words import axis_side
from htfi.narrative.facts.extraction import FactScores, extract_facts, judge_event
from htfi.narrative.facts.network import LABELS, TOKEN_LABELS, WEIGHTS_FILE, FactHeads
from htfi.narrative.facts.record import KINDS, ROLES, EventKind, Modality, PartyRole, Tense
from htfi.wiring.facts import open_fact_reader

WIDTH = 8


def heads(seed: int = 0) -> FactHeads:
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float16).astype(np.float32)

    return FactHeads(
        encoder="tiny",
        attention=random(WIDTH),
        weights={name: random(2 * WIDTH, len(labels)) for name, labels in LABELS.items()}
        | {name: random(WIDTH, len(labels)) for name, labels in TOKEN_LABELS.items()},
        biases={name: random(len(labels)) for name, labels in {**LABELS, **TOKEN_LABELS}.items()},
        temperatures={"tone": 1.5},
        card={"seed": seed},
    )


def test_heads_come_back_from_their_files(tmp_path: Path) -> None:
    made = heads()
    digest = made.save(tmp_path)
    loaded = FactHeads.load(tmp_path, digest)
    states = np.random.default_rng(1).normal(size=(5, WIDTH)).astype(np.float32)
    spans = np.zeros((5, 2), np.int64)
    one, other = made.read(states, spans), loaded.read(states, spans)
    for name in (*LABELS, *TOKEN_LABELS):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_allclose(getattr(one, name).sum(axis=-1), 1.0)
    assert made.save(tmp_path) == digest


@pytest.mark.parametrize("seed", range(8))
def test_heads_of_the_text_read_together_give_the_bits_of_each_alone(seed: int) -> None:
    made = heads(seed)
    states = np.random.default_rng(seed).normal(size=(3 + seed, WIDTH)).astype(np.float32)
    powers = np.exp(states @ made.attention - (states @ made.attention).max())
    about = np.concatenate(
        [np.add.reduce(states, axis=0) / np.float32(len(states)), powers / np.add.reduce(powers) @ states]
    )
    pooled = pooled_states([states], made.attention)
    np.testing.assert_allclose(
        pooled[0], about, rtol=1e-4, atol=1e-6
    )  # numpy's order of sums is the processor's
    found = made.read(states, np.zeros((len(states), 2), np.int64))
    for name in LABELS:
        alone = np.empty((1, made.weights[name].shape[1]), np.float32)
        row_products(pooled, np.ascontiguousarray(made.weights[name]), alone)
        logits = (alone[0] + made.biases[name]).astype(np.float64)
        np.testing.assert_allclose(alone[0], about @ made.weights[name], rtol=1e-3, atol=1e-4)
        wanted = softmax(logits / made.temperatures.get(name, 1.0))
        np.testing.assert_array_equal(getattr(found, name), wanted)


def test_changed_or_foreign_files_are_refused(tmp_path: Path) -> None:
    digest = heads().save(tmp_path)
    weights = tmp_path / "facts.bin"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-2] + b"\0\0")
    with pytest.raises(IntegrityError, match="were changed"):
        FactHeads.load(tmp_path, digest)
    weights.write_bytes(whole[:-2])
    with pytest.raises(InvalidInput, match="does not fit"):
        FactHeads.load(tmp_path)
    (tmp_path / "facts.json").write_text("{}")
    with pytest.raises(InvalidInput, match=r"facts\.json"):
        FactHeads.load(tmp_path)
    with pytest.raises(InvalidInput, match="htfi models facts"):
        FactHeads.load(tmp_path / "nothing")


def test_states_that_are_not_finite_give_shares_that_are() -> None:
    states = np.full((3, WIDTH), np.nan, np.float32)
    scores = heads().read(states, np.zeros((3, 2), np.int64))
    assert all(np.isfinite(getattr(scores, name)).all() for name in (*LABELS, *TOKEN_LABELS))


def scores_of(text: str, event: EventKind, parties: dict[str, tuple[PartyRole, int]]) -> FactScores:
    """Scores that are sure of an event and of the parties; `int` is the place of the party's side."""

    def sure(num: int, place: int) -> np.ndarray:
        shares = np.full(num, 0.1 / (num - 1))
        shares[place] = 0.9
        return shares

    words = text.split(" ")
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    spans = np.array([(start, start + len(word)) for start, word in zip(starts, words, strict=True)])
    roles, effects = [], []
    for start, end in spans:
        named = next((name for name in parties if text[start:end] in name.split(" ")), None)
        role, side = parties[named] if named else (None, 1)
        roles.append(sure(len(ROLES) + 1, len(ROLES) if role is None else ROLES.index(role)))
        effects.append(sure(3, side))
    return FactScores(
        event=sure(len(KINDS), KINDS.index(event)),
        tone=sure(3, 0),
        axis=sure(3, 0),
        modality=sure(5, 1),
        tense=sure(3, 2),
        spans=spans.astype(np.int64),
        roles=np.array(roles),
        effects=np.array(effects),
    )


def test_parties_get_their_roles_and_sides() -> None:
    text = "Zentiva to be swallowed by Quellux for cash"
    seen = scores_of(
        text,
        EventKind.ACQUISITION,
        {"Zentiva": (PartyRole.TARGET, 0), "Quellux": (PartyRole.ACQUIRER, 2)},
    )
    facts = extract_facts(text, seen, EntityLinker({}), "reader@1")
    assert (facts.event, facts.modality, facts.tense) == (EventKind.ACQUISITION, Modality.WILL, Tense.RECAP)
    assert {one.name: one.role for one in facts.parties} == {
        "Zentiva": PartyRole.TARGET,
        "Quellux": PartyRole.ACQUIRER,
    }
    assert {one.name: one.effect > 0.0 for one in facts.parties} == {"Zentiva": True, "Quellux": False}
    assert facts.reader == "reader@1"


def test_two_parties_are_not_both_the_acquirer() -> None:
    text = "Zentiva merges with Quellux"
    both = {"Zentiva": (PartyRole.ACQUIRER, 0), "Quellux": (PartyRole.ACQUIRER, 0)}
    facts = extract_facts(text, scores_of(text, EventKind.ACQUISITION, both), EntityLinker({}))
    roles = [one.role for one in facts.parties]
    assert sorted(roles) in (
        [PartyRole.ACQUIRER, PartyRole.TARGET],
        [PartyRole.ACQUIRER, PartyRole.ACQUIRER],
    )


@pytest.mark.parametrize("text", ["", " ", "🚀🚀", "A" * 5000, "| EPS | 1.2 |", "净利润增长", "\u202eabc"])
def test_code_alone_reads_any_text(text: str) -> None:
    facts = extract_facts(text, None, EntityLinker({}))
    assert facts.event is EventKind.UNKNOWN
    assert facts.parties == ()


def test_a_changed_file_of_the_shipped_network_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "facts"
    shutil.copytree(models.FACTS, folder)
    monkeypatch.setitem(models.DIGESTS, folder, models.DIGESTS[models.FACTS])
    monkeypatch.setattr(models, "FACTS", folder)
    (facts,) = open_fact_reader(EncodingConfig()).read(["Nike raises full-year forecast"])
    assert facts.event is EventKind.GUIDANCE
    heads = bytearray((folder / WEIGHTS_FILE).read_bytes())
    heads[7] ^= 1
    (folder / WEIGHTS_FILE).write_bytes(bytes(heads))
    with pytest.raises(IntegrityError, match="were changed"):
        open_fact_reader(EncodingConfig()).read(["Nike raises full-year forecast"])
    graph = folder / models.ENCODER_GRAPH
    whole = bytearray(graph.read_bytes())
    whole[len(whole) // 2] ^= 1
    graph.write_bytes(bytes(whole))
    with pytest.raises(IntegrityError, match="was changed"):
        open_fact_reader(EncodingConfig()).read(["Nike raises full-year forecast"])


@pytest.mark.parametrize("seed", range(4))
def test_the_tone_is_the_mean_with_that_of_another_head(seed: int) -> None:
    made, rng = heads(seed), np.random.default_rng(seed)
    states = [rng.normal(size=(num, WIDTH)).astype(np.float32) for num in (3, 9, 4)]
    spans = [np.zeros((len(one), 2), np.int64) for one in states]
    others = softmax(rng.normal(size=(3, 3)))
    alone, joined = made.read_each(states, spans), made.read_each(states, spans, others)
    assert len(alone) == len(joined) == 3
    for one, both, other in zip(alone, joined, others, strict=True):
        np.testing.assert_array_equal(both.tone, (one.tone + other) / 2.0)
        for name in FactScores._fields:
            if name != "tone":
                np.testing.assert_array_equal(getattr(both, name), getattr(one, name))


@pytest.mark.parametrize(
    ("text", "side"), [("Acme profit soars", 1), ("Acme profit plunges", -1), ("Acme", 0)]
)
def test_a_side_that_words_tell_has_the_bits_that_arrays_give(text: str, side: int) -> None:
    rng = np.random.default_rng(5)
    assert axis_side(EventKind.EARNINGS, text) == side
    every = softmax(rng.normal(scale=3.0, size=(200, 3)))
    assert len(every) == 200
    for shares in every:
        scores = scores_of(text, EventKind.EARNINGS, {})._replace(tone=shares)
        told = shares * np.where(np.arange(3) == 1 - side, 0.85, (1.0 - 0.85) / 2.0)
        up, neutral, down = (told / told.sum() if side else shares).tolist()
        found = judge_event(text, scores)
        assert (found.tone, found.neutral) == (round(up - down, 3), round(neutral, 3))
