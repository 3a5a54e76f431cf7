"""Which words of a headline counted: names, figures with their roles, words that tell a side, words a model weighed."""

import random
from itertools import pairwise

import pytest

from htfi.domain.news import PhraseKind
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.key_phrases import MAX_CHARS, MAX_PHRASES, key_phrases
from htfi.wiring.facts import symbol_linker


@pytest.fixture(scope="module")
def linker() -> EntityLinker:
    return symbol_linker()


def said(text: str, linker: EntityLinker, **options: object) -> list[tuple[str, str]]:
    return [(text[one.start : one.end], one.why) for one in key_phrases(text, linker, **options)]  # type: ignore[arg-type]


def test_names_figures_and_comparisons_are_found_with_why(linker: EntityLinker) -> None:
    assert said(
        "IBM beats estimates, EPS $1.40 vs $1.35 expected", linker, event="earnings", symbol="IBM"
    ) == [
        ("IBM", "names IBM"),
        ("beats estimates", "above what was expected"),
        ("$1.40", "figure: reported"),
        ("$1.35", "figure: expected"),
    ]


def test_words_tell_a_side_of_the_recorded_kind_of_event_alone(linker: EntityLinker) -> None:
    text = "Trump pauses new tariffs on China"
    (phrase,) = [one for one in key_phrases(text, linker, "tariffs") if one.kind is PhraseKind.SIDE]
    assert (text[phrase.start : phrase.end], phrase.why) == ("pauses new tariffs", "easing")
    assert [one for one in key_phrases(text, linker, "") if one.kind is PhraseKind.SIDE] == []


def test_side_is_turned_where_it_is_negated(linker: EntityLinker) -> None:
    words = dict(said("Trump denies imposing new tariffs on China", linker, event="tariffs"))
    assert "easing" in words.values()
    assert "strain" not in words.values()


def test_heaviest_words_of_a_model_are_named_where_nothing_else_is(linker: EntityLinker) -> None:
    text = "Acme surprises everyone today"
    assert said(text, linker, nats=(0.0, 1.25, -0.2, 0.01)) == [
        ("surprises", "the model’s answer is likelier with it, by 1.25 nats"),
        ("everyone", "the model’s answer is less likely with it, by 0.20 nats"),
    ]


def test_small_letters_of_another_length_move_nothing(linker: EntityLinker) -> None:
    assert said("İstanbul: Trump pauses new tariffs", linker, event="tariffs") == []


def test_phrases_stand_in_order_apart_and_within_the_text_whatever_it_is(linker: EntityLinker) -> None:
    rng = random.Random(21)
    pieces = [
        "IBM",
        "$1.40",
        "vs",
        "beats",
        "estimates",
        "\U0001f600",
        "İ",
        "<b>",
        "up 3%",
        "tariffs",
        "cuts",
        " ",
        "\u202e",
        "Fed",
    ]
    num_found = 0
    for _ in range(300):
        text = " ".join(rng.choices(pieces, k=rng.randrange(0, 60)))
        found = key_phrases(text, linker, "tariffs", "IBM", [rng.gauss(0, 1) for _ in range(60)])
        num_found += len(found)
        assert len(found) <= MAX_PHRASES
        assert all(0 <= one.start < one.end <= min(len(text), MAX_CHARS) for one in found)
        assert all(one.end <= other.start for one, other in pairwise(found))
    assert num_found > 1_000
