"""What every author keeps to, whichever engine it is: the embedded one over any network, and one behind a server."""

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from chat_server import Call, chat_server

from htfi.adapters.openai.config import FrontierConfig
from htfi.adapters.openai.generator import OpenAIGenerator
from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import ForwardOutput, NetworkShape
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
    RequestRefused,
    ScaledMoves,
)
from htfi.narrative.answer import MARKS, parse_answer, view_grammar
from htfi.narrative.ports import TextGenerator
from htfi_train.tokenizer import train_tokenizer

WORDS = [
    "profit",
    "beats",
    "what was expected",
    "the court",
    "rules",
    "supply",
    "falls",
    "as feared",
    "{symbol}",
]
ENGINES = ("embedded", "embedded in marks", "remote")


class Chance:
    """A network of fixed random logits: the next token depends on the last alone."""

    def __init__(self, vocab_size: int) -> None:
        self.shape = NetworkShape(1, 1, 2, vocab_size, 2_048)
        self.digest = "c0" * 32
        self._table = (
            np.random.Generator(np.random.PCG64(5)).normal(0, 3, (vocab_size, vocab_size)).astype(np.float32)
        )

    def forward(self, ids, positions, mask, keys, values) -> ForwardOutput:
        new = np.zeros((1, ids.shape[0], 1, ids.shape[1], 2), np.float32)
        return ForwardOutput(self._table[ids], new, new)


def well_behaved(call: Call) -> None:
    """Picks options and words by what is asked, as a model at temperature 0 would."""
    rng = random.Random(json.dumps(call.body["messages"]))
    fields = call.schema["properties"].items()
    call.answer(
        {name: rng.choice(field["enum"]) if "enum" in field else words(rng) for name, field in fields}
    )


def words(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS[:-1], k=rng.randrange(6)))


@contextmanager
def opened(engine: str, folder: Path) -> Iterator[TextGenerator]:
    if engine == "remote":
        with chat_server(well_behaved) as server:
            config = FrontierConfig(server.url, "big-model", key_variable="", budget_tokens=10**9)
            with OpenAIGenerator(config, {}) as writer:
                yield writer
        return
    marks = [f"<{name}>" for name in MARKS] if engine == "embedded in marks" else []
    train_tokenizer(iter(WORDS * 5), folder / "tokenizer.json", 300, marks, 129 if marks else 0)
    tokenizer = HuggingFaceTokenizer(folder)
    yield LocalGenerator(Chance(tokenizer.vocab_size), tokenizer, "chance")


@pytest.fixture(scope="module", params=ENGINES)
def writer(request, tmp_path_factory) -> Iterator[TextGenerator]:
    with ExitStack() as stack:
        yield stack.enter_context(opened(request.param, tmp_path_factory.mktemp("author")))


def any_form(rng: random.Random) -> OutputGrammar:
    """Any mix of parts that plain text can say."""
    parts: list[FixedField | ChoiceField | FreeTextField] = []
    for place in range(rng.randrange(1, 6)):
        kind = rng.randrange(3)
        if kind == 0:
            parts.append(FixedField((PlainText(f"Label {place}:"),)))
        elif kind == 1:
            options = rng.sample(
                ["up", "down", "flat", "0.25", "10%", "central bank", "[1]", "é"], rng.randrange(1, 6)
            )
            parts.append(
                ChoiceField(f"choice{place}", tuple((PlainText(f" {option}\n"),) for option in options))
            )
        else:
            parts.append(FreeTextField(f"words{place}", rng.randrange(1, 12), PlainText("\n")))
    return tuple(parts)


def asked(rng: random.Random, form: OutputGrammar) -> GenerationRequest:
    prompt: Prompt = (
        PlainText(f"News: {words(rng)} <view> </s>"),
        ScaledMoves((0.5, -2.0)),
        PlainText("\n\n"),
    )
    return GenerationRequest(prompt, form, rng.randrange(2**31), rng.choice([0.0, 1.0]), 20_000.0, 1)


def holds(form: OutputGrammar, answer: Completion | RequestRefused) -> None:
    assert isinstance(answer, Completion), answer
    fields = {part.name: part for part in form if not isinstance(part, FixedField)}
    assert list(answer.fields) == list(fields)
    for name, part in fields.items():
        said = answer.fields[name]
        if isinstance(part, ChoiceField):
            assert 0 <= int(said) < len(part.options)
            assert said == str(int(said))
        else:
            assert not any(letter.isnumeric() or letter in "\n\r\0" for letter in said)


def test_every_field_of_any_form_is_written(writer):
    rng = random.Random(1)
    requests = [asked(rng, any_form(rng)) for _ in range(25)]
    answers = writer.write(requests)
    assert len(answers) == len(requests)
    for request, answer in zip(requests, answers, strict=True):
        holds(request.form, answer)


@pytest.mark.parametrize("num_items", [0, 1, 6])
def test_an_answer_in_the_readers_form_is_understood(writer, num_items):
    form = view_grammar(writer.dialect, num_items)
    (answer,) = writer.write([asked(random.Random(2), form)])
    holds(form, answer)
    assert len(parse_answer(answer.fields).cited) <= num_items


def test_answers_come_in_the_order_of_the_questions(writer):
    forms = [(ChoiceField(f"q{place}", ((PlainText(" a\n"),), (PlainText(" b\n"),))),) for place in range(12)]
    answers = writer.write([asked(random.Random(place), form) for place, form in enumerate(forms)])
    assert [list(answer.fields) for answer in answers] == [[f"q{place}"] for place in range(12)]


def test_the_same_question_has_the_same_answer_alone_and_among_others(writer):
    rng = random.Random(4)
    form = view_grammar(writer.dialect, 3)
    requests = [asked(rng, form) for _ in range(6)]
    together = writer.write(requests)
    for request, answer in zip(requests, together, strict=True):
        assert writer.write([request])[0].fields == answer.fields


def test_what_cannot_be_answered_is_refused_beside_answers(writer):
    rng = random.Random(3)
    good = asked(rng, view_grammar(writer.dialect, 2))
    twice = (ChoiceField("same", ((PlainText("a"),), (PlainText("a"),))),)
    named_twice = (FreeTextField("w", 3, PlainText("\n")), FreeTextField("w", 3, PlainText("\n")))
    bad = [
        asked(rng, twice),
        asked(rng, named_twice),
        asked(rng, (ChoiceField("none", ()),)),
        GenerationRequest((PlainText("a"), ScaledMoves((float("nan"),))), good.form),
        GenerationRequest(good.prompt, good.form, temperature=float("nan")),
        GenerationRequest(good.prompt, good.form, temperature=-1.0),
    ]
    answers = writer.write([good, *bad, good])
    assert [isinstance(answer, Completion) for answer in answers] == [True, *[False] * len(bad), True]
    for answer in answers[1:-1]:
        assert isinstance(answer, RequestRefused)
        assert answer.reason
        assert "\n" not in answer.reason


def test_nothing_asked_is_nothing_answered(writer):
    assert writer.write([]) == []


def test_a_form_without_a_field_is_an_answer_without_one(writer):
    (answer,) = writer.write([asked(random.Random(6), (FixedField((PlainText("so be it"),)),))])
    assert isinstance(answer, Completion)
    assert answer.fields == {}


def test_an_author_names_itself(writer):
    assert writer.version.count("@") == 1
    assert all(writer.version.split("@"))


def test_marks_are_slots_of_words_where_the_vocabulary_has_them(writer):
    form = (FreeTextField("words", 12, PlainText("\n"), (ControlToken("symbol"),)),)
    (answer,) = writer.write([asked(random.Random(8), form)])
    if isinstance(answer, Completion):
        assert "{" not in answer.fields["words"].replace("{symbol}", "")
    else:
        assert "symbol" in answer.reason
