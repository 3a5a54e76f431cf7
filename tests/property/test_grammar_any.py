"""Whatever a model's logits: every writing parses, and free words hold nothing that they may not."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.decoding.grammar import CompiledGrammar
from htfi.decoding.noise import noise_keys
from htfi.decoding.sampling import SamplingParams, sample_tokens
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.generation import (
    ChoiceField,
    ControlToken,
    FixedField,
    FreeTextField,
    OutputGrammar,
    PlainText,
    ScaledMoves,
)
from tiny_network import TinyTokenizer

MINI, PLAIN = Vocabulary(TinyTokenizer()), Vocabulary(TinyTokenizer(marks=False))
plain_text = st.sampled_from(
    [" up", " the end", ": ", "a", "ab", "abc", "rose", " rose sharply", "1.5%", "(b)"]
)
texts = plain_text.map(PlainText)
marks = st.sampled_from(
    [ControlToken("h1"), ControlToken("h2"), ControlToken("view"), ControlToken("end"), ControlToken("size")]
)
sigmas = st.lists(st.floats(-5, 5), max_size=3).map(lambda values: ScaledMoves(tuple(values)))


@st.composite
def forms(draw: st.DrawFn, with_marks: bool) -> OutputGrammar:
    """Any form that compiles: choices whose options begin one another too, where a fixed part follows."""
    segments = st.one_of(texts, marks, sigmas) if with_marks else st.one_of(texts, sigmas)
    parts: list[FixedField | ChoiceField | FreeTextField] = []
    for place in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["fixed", "choice", "words"]))
        prompts = st.lists(segments, max_size=2).map(tuple)
        if kind == "fixed":
            parts.append(FixedField(draw(prompts)))
        elif kind == "choice":
            parts.append(ChoiceField(f"f{place}", tuple(draw(st.lists(prompts, min_size=1, max_size=6)))))
            parts.append(FixedField((draw(st.sampled_from([PlainText("\n"), PlainText("|")])),)))
        else:
            end = draw(
                st.sampled_from(
                    [PlainText("\n"), PlainText(".\nG"), PlainText("|")] + [ControlToken("end")] * with_marks
                )
            )
            slots = (
                (ControlToken("size"), ControlToken("symbol")) if with_marks and draw(st.booleans()) else ()
            )
            parts.append(FreeTextField(f"f{place}", draw(st.integers(0, 9)), end, slots))
    return tuple(parts)


def write(form: CompiledGrammar, vocab_size: int, seed: int) -> list[int]:
    rng = np.random.Generator(np.random.PCG64(seed))
    tokens, state = form.forced(form.start)
    while state != form.done:
        logits = (rng.standard_normal((1, vocab_size)) * 5).astype(np.float32)
        noise = noise_keys(seed, np.zeros(1, np.int64), np.array([len(tokens)]))
        token = int(sample_tokens(logits, form.steps[state].allowed, SamplingParams(1.0), noise)[0])
        forced, state = form.forced(form.advance(state, token))
        tokens += [token, *forced]
    return tokens


def is_word(text: str) -> bool:
    return not any(unicodedata.category(c)[0] in "NC" or c == "二" for c in text)


@pytest.mark.parametrize("vocabulary", [MINI, PLAIN], ids=["marks", "no marks"])
@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(max_examples=examples(150), deadline=None)
def test_every_writing_parses_and_says_what_was_chosen(
    vocabulary: Vocabulary, data: st.DataObject, seed: int
):
    form = data.draw(forms(with_marks=vocabulary is MINI))
    try:
        compiled = CompiledGrammar(form, vocabulary)
    except InvalidInput as error:
        reason = str(error)
    else:
        reason = ""
    if reason:
        assert "two options" in reason or "begins another" in reason
        return
    tokens = write(compiled, vocabulary.tokenizer.vocab_size, seed)
    assert len(tokens) <= compiled.max_tokens
    fields = compiled.fields(tokens)
    said: list[int] = []
    for part in form:
        match part:
            case FixedField(segments):
                said += vocabulary.encode(segments)
            case ChoiceField(name, options):
                said += vocabulary.encode(options[int(fields[name])])
            case FreeTextField(name, max_tokens, end, slots):
                words = fields[name]
                for slot in slots:
                    words = words.replace("{" + slot.name + "}", "")
                assert is_word(words)
                assert not set("{}") & set(words)
                ending = vocabulary.segment(end)
                size = next(n for n in range(max_tokens + 1) if tokens[len(said) + n] == ending[0])
                said += [*tokens[len(said) : len(said) + size], *ending]
    assert said == tokens
    specials = {token for token in tokens if vocabulary.tokenizer.piece(token) is None}
    assert specials <= {token for part in form for token in allowed_specials(vocabulary, part)}
    for cut in {0, len(tokens) // 2, len(tokens) - 1} if tokens else set():
        with pytest.raises(IntegrityError):
            compiled.fields(tokens[:cut])
    with pytest.raises(IntegrityError):
        compiled.fields([*tokens, 0])


def allowed_specials(vocabulary: Vocabulary, part: FixedField | ChoiceField | FreeTextField) -> list[int]:
    match part:
        case FixedField(segments):
            ids = vocabulary.encode(segments)
        case ChoiceField(_, options):
            ids = [token for option in options for token in vocabulary.encode(option)]
        case FreeTextField(_, _, end, slots):
            ids = [*vocabulary.segment(end), *vocabulary.encode(slots)]
    return [token for token in ids if vocabulary.tokenizer.piece(token) is None]


@given(
    st.lists(st.sampled_from(["<view>", "</view>", "<s>", "<p3>", "<h1>", " up", "<", "p3>", "</s>"])).map(
        "".join
    )
)
def test_no_text_becomes_a_mark(text: str):
    ids = MINI.encode((PlainText(text),))
    assert all(MINI.tokenizer.piece(token) is not None for token in ids)
    assert MINI.tokenizer.decode(ids) == text
