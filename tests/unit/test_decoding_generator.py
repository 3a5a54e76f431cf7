"""The embedded author over a tiny transformer: forms hold, companions and caches change nothing, no leak."""

import numpy as np
import pytest

from htfi.decoding.config import DecodingConfig
from htfi.decoding.local_generator import LocalGenerator
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FixedField,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    Prompt,
    PromptDialect,
    RequestRefused,
    ScaledMoves,
)
from kv_blocks import num_cached, num_free
from tiny_network import TinyNetwork, TinyTokenizer

TOKENIZER = TinyTokenizer()
FORM: OutputGrammar = (
    FixedField((ControlToken("view"),)),
    ChoiceField("cite", ((ControlToken("h1"),), (ControlToken("h2"),), (ControlToken("h3"),))),
    FreeTextField("words", 12, ControlToken("end"), (ControlToken("size"), ControlToken("symbol"))),
    FixedField((PlainText(" so it goes"),)),
    ChoiceField("direction", ((ControlToken("up"),), (ControlToken("flat"),), (ControlToken("down"),))),
    FixedField((ControlToken("/view"), PlainText(" the end"))),
)
NEWS: Prompt = (
    ControlToken("s"),
    ControlToken("news"),
    ControlToken("h1"),
    PlainText(" the price rose"),
    ControlToken("h2"),
    PlainText(" fell fell, <view>"),
    ControlToken("/news"),
)


def author(seed: int = 0, tokenizer: TinyTokenizer = TOKENIZER, **settings: int) -> LocalGenerator:
    config = DecodingConfig(**{"block_tokens": 8, "batch_bytes": 2**22, "cache_bytes": 2**20, **settings})
    return LocalGenerator(TinyNetwork(tokenizer.vocab_size, seed), tokenizer, "tiny", config)


def question(
    about: str, seed: int = 0, temperature: float = 1.0, form: OutputGrammar = FORM
) -> GenerationRequest:
    prompt = (
        *NEWS,
        ControlToken("asset"),
        PlainText(about),
        ControlToken("prices"),
        ScaledMoves((0.1, -1.5, 3.0)),
    )
    return GenerationRequest(prompt, form, seed=seed, temperature=temperature, shared=len(NEWS))


def written(answers: list[Completion | RequestRefused]) -> list[Completion]:
    assert all(isinstance(answer, Completion) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Completion)]


def test_a_writing_names_every_field_and_repeats():
    (first,) = written(author().write([question(" abc", seed=3)]))
    (again,) = written(author().write([question(" abc", seed=3)]))
    (other,) = written(author().write([question(" abc", seed=4)]))
    assert set(first.fields) == {"cite", "words", "direction"}
    assert first == again
    assert first.tokens != other.tokens


def test_together_later_or_in_any_order_the_tokens_are_those_written_alone():
    requests = [
        question(f" {name}", seed=i) for i, name in enumerate(["a", "bcd", "ef up", "g", "the down"] * 3)
    ]
    alone = [written(author().write([request]))[0].tokens for request in requests]
    for max_batch in (2, 5, 16):
        together = written(author(max_batch=max_batch).write(requests))
        assert [answer.tokens for answer in together] == alone
    backwards = written(author(max_batch=3).write(requests[::-1]))
    assert [answer.tokens for answer in backwards] == alone[::-1]


def test_a_second_question_about_the_same_news_reads_only_its_own_tokens():
    engine = author()
    first, second = written(engine.write([question(" abc"), question(" def up")]))
    num_shared = len(engine.vocabulary.encode(NEWS))
    assert first.num_reused_tokens == 0
    assert second.num_reused_tokens == num_shared
    network = engine.sessions.network
    assert isinstance(network, TinyNetwork)
    before = network.num_positions
    short = question(" g", form=(ChoiceField("way", ((PlainText("a"),), (PlainText("b"),))),))
    (third,) = written(engine.write([short]))
    assert network.num_positions - before == third.num_prompt_tokens - num_shared


def test_a_prompt_too_long_for_the_model_is_refused_with_both_numbers():
    long, good = question(" the" * 600), question(" a")
    refused, answered = author().write([long, good])
    assert isinstance(refused, RequestRefused)
    assert "at most 512" in refused.reason
    assert isinstance(answered, Completion)


def test_a_dialect_follows_from_the_vocabulary():
    assert author().dialect is PromptDialect.MINI
    assert author(tokenizer=TinyTokenizer(marks=False)).dialect is PromptDialect.PLAIN


def test_a_mark_that_the_vocabulary_lacks_is_a_refusal_naming_it():
    (refused,) = author(tokenizer=TinyTokenizer(marks=False)).write([question(" a")])
    assert isinstance(refused, RequestRefused)
    assert "'<view>'" in refused.reason


def test_a_network_and_a_tokenizer_of_different_folders_are_refused():
    with pytest.raises(InvalidInput, match="same folder"):
        LocalGenerator(TinyNetwork(10), TOKENIZER, "tiny")


@pytest.mark.parametrize("temperature", [-1.0, float("nan"), float("inf"), 1e-9])
def test_a_temperature_that_is_none_is_refused(temperature: float):
    (refused,) = author().write([question(" a", temperature=temperature)])
    assert isinstance(refused, RequestRefused)
    assert "temperature" in refused.reason


def test_at_temperature_zero_the_seed_changes_nothing():
    one, two = (written(author().write([question(" a", seed=seed, temperature=0.0)]))[0] for seed in (1, 2))
    assert one.tokens == two.tokens


def test_a_small_memory_queues_and_a_smaller_one_refuses():
    requests = [question(" abc", seed=i) for i in range(6)]
    per_token = TinyNetwork(TOKENIZER.vocab_size).shape.kv_bytes_per_token
    roomy = written(author().write(requests))
    queued = author(batch_bytes=2 * 64 * per_token, cache_bytes=0)
    assert [answer.tokens for answer in written(queued.write(requests))] == [a.tokens for a in roomy]
    for answer in author(batch_bytes=63 * per_token).write(requests):
        assert isinstance(answer, RequestRefused)
        assert "batch_bytes" in answer.reason


def test_after_many_requests_every_slot_is_free_and_every_block_free_or_cached():
    engine = author(cache_bytes=40_000, max_batch=4)
    for turn in range(20):
        engine.write([question(" " + "abcdef"[i] * (turn % 5 + 1), seed=turn) for i in range(6)])
        engine.write([question(" the" * 600)])
    sessions = engine.sessions
    assert sessions.arena.num_rows == 0
    assert num_free(sessions.cache) + num_cached(sessions.cache) == sessions.cache.num_blocks
    assert num_cached(sessions.cache) > 0


class Broken(TinyNetwork):
    """Gives a NaN in the pass of this number."""

    def __init__(self, vocab_size: int, pass_number: int) -> None:
        super().__init__(vocab_size)
        self.broken_pass = pass_number

    def forward(self, ids, positions, mask, keys, values):
        out = super().forward(ids, positions, mask, keys, values)
        if self.num_passes == self.broken_pass:
            for array in out:
                array[...] = np.nan
        return out


@pytest.mark.parametrize("pass_number", [1, 5, 8])
def test_a_network_that_breaks_once_refuses_and_spoils_nothing_after(pass_number: int):
    requests = [question(" abc", seed=i) for i in range(3)]
    engine = LocalGenerator(
        Broken(TOKENIZER.vocab_size, pass_number), TOKENIZER, "tiny", DecodingConfig(block_tokens=8)
    )
    first = engine.write(requests)
    assert any(isinstance(answer, RequestRefused) and "finite" in answer.reason for answer in first)
    healthy = written(author().write(requests))
    assert [answer.tokens for answer in written(engine.write(requests))] == [a.tokens for a in healthy]


class Absent(TinyNetwork):
    """Cannot be reached from this pass on."""

    def __init__(self, vocab_size: int, last_pass: int) -> None:
        super().__init__(vocab_size)
        self.last_pass = last_pass

    def forward(self, ids, positions, mask, keys, values):
        if self.num_passes == self.last_pass:
            raise DependencyUnavailable("the engine is gone")
        return super().forward(ids, positions, mask, keys, values)


@pytest.mark.parametrize("last_pass", [0, 3, 9, 12, 20])
def test_a_network_that_is_gone_refuses_what_is_left_and_holds_nothing(last_pass: int):
    config = DecodingConfig(block_tokens=8, max_batch=2)
    engine = LocalGenerator(Absent(TOKENIZER.vocab_size, last_pass), TOKENIZER, "tiny", config)
    answers = engine.write([question(" abc", seed=i) for i in range(4)])
    assert answers[-1] == RequestRefused("the engine is gone")
    assert engine.sessions.arena.num_rows == 0


def test_memory_held_by_others_is_a_refusal_and_no_endless_wait():
    engine = author(batch_bytes=2 * 64 * TinyNetwork(1).shape.kv_bytes_per_token)
    held = engine.sessions.open([1, 2, 3], 100).row
    (refused,) = engine.write([question(" abc")])
    assert isinstance(refused, RequestRefused)
    assert "other sequences hold" in refused.reason
    engine.sessions.close(held)
    assert isinstance(engine.write([question(" abc")])[0], Completion)


def test_rows_with_nearly_as_much_to_read_are_read_in_one_pass():
    engine = author()
    letters = tuple((PlainText(letter),) for letter in "abc")
    asked = [
        GenerationRequest(
            (PlainText("abc"),),
            (
                ChoiceField("one", letters),
                FixedField((PlainText(" the" * num),)),
                ChoiceField("two", letters),
            ),
        )
        for num in (1, 2)
    ]
    written(engine.write(asked))
    assert isinstance(engine.sessions.network, TinyNetwork)
    assert engine.sessions.network.num_passes == 1 + 1, "both ask the same, so the prompt is read once"


def test_forced_tokens_are_read_in_one_pass_with_the_next_choice():
    engine = author()
    form = (
        ChoiceField("one", ((PlainText("a"),), (PlainText("b"),))),
        FixedField((PlainText(" the price is known and"),)),
        ChoiceField("two", ((PlainText("c"),), (PlainText("d"),))),
    )
    asked = GenerationRequest((PlainText("abc"),), form)
    (answer,) = written(engine.write([asked]))
    assert len(answer.tokens) > 10
    assert isinstance(engine.sessions.network, TinyNetwork)
    assert engine.sessions.network.num_passes == 2
