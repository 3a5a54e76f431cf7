"""Agreement and price paths: a model agrees with itself, another as often as asking it step by step says."""

import numpy as np
import pytest

from gumbel_noise import gumbel
from htfi.decoding.config import DecodingConfig
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.noise import noise_keys
from htfi.decoding.ports import Ids
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FixedField,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    RequestRefused,
)
from htfi_train.agreement import AgreementCounts, measure_agreement
from htfi_train.paths.sample import count_path_matches, sample_paths
from tiny_network import TinyNetwork, TinyTokenizer

TOKENIZER = TinyTokenizer()
FORM: OutputGrammar = (
    FixedField((ControlToken("view"),)),
    FreeTextField("words", 15, ControlToken("end")),
    FixedField((PlainText(" so"),)),
    ChoiceField("way", ((ControlToken("up"),), (ControlToken("flat"),), (ControlToken("down"),))),
)
REQUESTS = [
    GenerationRequest(
        (ControlToken("s"), PlainText(" the price " + "abc"[i % 3])), FORM, seed=i, temperature=1.0
    )
    for i in range(12)
]
PREFIX = [5, 6, 7, 30, 8, 2, 1, 40, 41]


def author(seed: int, **settings: int) -> LocalGenerator:
    config = DecodingConfig(**{"block_tokens": 8, "batch_bytes": 2**22, "max_batch": 5, **settings})
    return LocalGenerator(TinyNetwork(TOKENIZER.vocab_size, seed, sharpness=1.0), TOKENIZER, "tiny", config)


def drawn(engine: LocalGenerator, num_paths: int, horizon: int, seed: int) -> Ids:
    sampled = sample_paths(engine.sessions, engine.vocabulary, PREFIX, num_paths, horizon, seed=seed)
    assert not isinstance(sampled, RequestRefused)
    return sampled.bins


def tokens_of(writer: LocalGenerator) -> list[tuple[int, ...]]:
    return [answer.tokens for answer in writer.write(REQUESTS) if isinstance(answer, Completion)]


def test_a_model_agrees_with_itself_at_every_open_place():
    target = author(0)
    writings = tokens_of(target)
    same = measure_agreement(author(0), REQUESTS, writings)
    assert isinstance(same, AgreementCounts)
    assert same.num_matches == same.num_choices
    assert same.num_choices["way"] == len(REQUESTS)
    fixed = len(target.vocabulary.encode((ControlToken("view"), PlainText(" so"), ControlToken("end"))))
    cut = sum(tokens.index(TOKENIZER.special("<end>")) == 16 for tokens in writings)  # their end was forced
    assert sum(same.num_choices.values()) == sum(len(t) - fixed + 1 for t in writings) - cut


def test_another_model_agrees_as_often_as_it_does_when_asked_step_by_step():
    writings = tokens_of(author(0))
    draft = author(1)
    counted = measure_agreement(draft, REQUESTS, writings)
    assert isinstance(counted, AgreementCounts)
    matches = {"words": 0, "way": 0}
    for request, tokens in zip(REQUESTS, writings, strict=True):
        for place in range(1, len(tokens)):
            # what has been written becomes fixed, and the draft writes on from there
            asked = draft.tokenize(request)
            assert not isinstance(asked, RequestRefused)
            if place not in {at for at, _, _ in asked.grammar.open_positions(tokens)}:
                continue
            opened = draft.sessions.open([*asked.prompt, *tokens[:place]], asked.max_length)
            draft.sessions.close(opened.row)
            name = next(field for at, _, field in asked.grammar.open_positions(tokens) if at == place)
            matches[name] += chosen(asked, opened.logits, tokens, place) == tokens[place]
    assert counted.num_matches == matches
    assert 0 < sum(counted.num_matches.values()) < sum(counted.num_choices.values())


def chosen(asked, logits, tokens, place) -> int:
    ids = next(step for at, step, _ in asked.grammar.open_positions(tokens) if at == place).allowed.ids
    noise = gumbel(noise_keys(asked.request.seed, np.array([0]), np.array([place])), ids)[0]
    return int(ids[np.argmax(logits[ids].astype(float) + noise)])


def test_a_writing_of_another_form_is_no_ground_for_agreement_and_leaves_no_row():
    draft = author(0)
    for bad in ((1, 2, 3), (1,) * 500):
        with pytest.raises(IntegrityError):
            measure_agreement(draft, REQUESTS[:1], [bad])
    refused = measure_agreement(author(0, batch_bytes=100), REQUESTS[:1], [(1,)])
    assert isinstance(refused, RequestRefused)
    assert draft.sessions.arena.num_rows == 0


def test_paths_are_price_bins_that_a_seed_repeats_whatever_the_room():
    wide, narrow = author(0), author(0, batch_bytes=4 * 64 * TinyNetwork(1).shape.kv_bytes_per_token)
    paths = drawn(wide, 20, 8, seed=3)
    assert paths.shape == (20, 8)
    assert paths.min() >= 0
    assert paths.max() < 9
    assert len(np.unique(paths, axis=0)) > 10
    turns = drawn(narrow, 20, 8, seed=3)
    assert np.array_equal(paths, turns)
    other = drawn(wide, 20, 8, seed=4)
    assert not np.array_equal(paths, other)
    assert wide.sessions.arena.num_rows == narrow.sessions.arena.num_rows == 0


def test_a_path_does_not_depend_on_how_many_are_drawn():
    engine = author(0)
    many, few = (drawn(engine, n, 6, seed=1) for n in (9, 2))
    assert np.array_equal(many[:2], few)


def test_a_model_draws_its_own_paths_again_and_another_some_of_them():
    target, draft = author(0), author(1)
    bins = drawn(target, 30, 10, seed=3)
    assert count_path_matches(target.sessions, target.vocabulary, PREFIX, bins, seed=3) == (300, 300)
    some = count_path_matches(draft.sessions, draft.vocabulary, PREFIX, bins, seed=3)
    assert not isinstance(some, RequestRefused)
    assert 30 < some[0] < 270
    wrong = count_path_matches(target.sessions, target.vocabulary, PREFIX, bins, seed=4)
    assert not isinstance(wrong, RequestRefused)
    assert wrong[0] < 150


def test_paths_need_price_tokens_and_room():
    plain = TinyTokenizer(marks=False)
    writer = LocalGenerator(TinyNetwork(plain.vocab_size), plain, "plain")
    with pytest.raises(InvalidInput, match="no price tokens"):
        sample_paths(writer.sessions, writer.vocabulary, PREFIX, 2, 2, seed=0)
    engine = author(0)
    with pytest.raises(InvalidInput, match="at least one"):
        sample_paths(engine.sessions, engine.vocabulary, PREFIX, 0, 2, seed=0)
    assert isinstance(
        sample_paths(engine.sessions, engine.vocabulary, PREFIX, 2, 600, seed=0), RequestRefused
    )
