"""Texts as their tokens come: parts of characters and beginnings of stop strings are held back, nothing is lost."""

from functools import cache

from hypothesis import example, given
from hypothesis import strategies as st

from htfi import models
from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.texts.stream import TextStream

TEXTS = st.text(st.sampled_from("aab <b/s>€日🙂é\n"), max_size=24)
STOPS = st.lists(st.text(st.sampled_from("ab <€🙂"), min_size=1, max_size=3), max_size=3)


@cache
def tokenizer() -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer(models.TARGET)


def parts_of(tokens: list[int], stops: list[str] = []) -> tuple[list[str], TextStream]:  # noqa: B006
    stream = TextStream(tokenizer(), stops)
    return [*(stream.add(token) for token in tokens), stream.end()], stream


def up_to_first(text: str, stops: list[str]) -> str:
    """Read character by character: the first place at which any stop ends, and where the longest such begins."""
    for end in range(1, len(text) + 1):
        ended = [stop for stop in stops if text[:end].endswith(stop)]
        if ended:
            return text[: end - max(map(len, ended))]
    return text


def test_character_of_several_tokens_comes_whole() -> None:
    tokens = tokenizer().encode("🙂")
    assert len(tokens) > 1
    parts, _ = parts_of(tokens)
    assert parts[: len(tokens) - 1] == [""] * (len(tokens) - 1)
    assert "".join(parts) == "🙂"


def test_cut_character_comes_at_the_end_as_a_mark() -> None:
    parts, _ = parts_of(tokenizer().encode("a🙂")[:-1])
    assert "".join(parts[:-1]) == "a"
    assert set(parts[-1]) == {"\ufffd"}


@given(TEXTS)
def test_parts_join_to_the_text(text: str) -> None:
    parts, stream = parts_of(tokenizer().encode(text))
    assert "".join(parts) == text
    assert not any("\ufffd" in part for part in parts)
    assert not stream.is_stopped


@given(TEXTS, STOPS)
@example("aab <b", ["aab", "a"])
@example("aab <b", ["ab <", "b"])
@example("aab <b", ["ab <", "b <"])
def test_parts_join_to_the_text_before_the_first_stop(text: str, stops: list[str]) -> None:
    parts, stream = parts_of(tokenizer().encode(text), stops)
    assert "".join(parts) == up_to_first(text, stops)
    assert stream.is_stopped == any(stop in text for stop in stops)


@given(st.lists(st.integers(0, 4_095), max_size=20), STOPS)
def test_any_tokens_give_what_they_decode_to(numbers: list[int], stops: list[str]) -> None:
    tokens = [one % tokenizer().vocab_size for one in numbers]
    parts, _ = parts_of(tokens, stops)
    assert "".join(parts) == up_to_first(tokenizer().decode(tokens), stops)
