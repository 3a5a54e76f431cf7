"""Documents by a schema: whatever path a model takes through the grammar, the document keeps to the schema."""

import json
import random
from functools import cache
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi import models
from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.texts.json_grammar import LanguageGrammar, TokenTexts
from htfi.decoding.texts.json_schema import any_object, language_of
from htfi.decoding.texts.language import Choice, Later, Part, Sequence, one_of, start, step
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import IntegrityError, InvalidInput

NAMES = st.sampled_from(["a", "b", 'quo"te', "ü"])
LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number", "boolean", "null", ["string", "null"]])}
    ),
    st.fixed_dictionaries({"type": st.just("string"), "minLength": st.integers(0, 2), "maxLength": st.integers(2, 4)}),
    st.fixed_dictionaries({"enum": st.lists(st.sampled_from([1, "x", None, True, [1], {"k": "v"}]), min_size=1)}),
    st.fixed_dictionaries({"const": st.sampled_from([0, "€", False])}),
)  # fmt: skip


def objects_of(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def with_required(properties: dict[str, Any]) -> st.SearchStrategy[Any]:
        required = st.lists(st.sampled_from(sorted(properties)), unique=True) if properties else st.just([])
        return required.map(
            lambda names: {
                "type": "object", "properties": properties, "required": names, "additionalProperties": False,
            }
        )  # fmt: skip

    return st.dictionaries(NAMES, parts, max_size=3).flatmap(with_required)


SCHEMAS = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        objects_of(parts),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": parts, "minItems": st.integers(0, 1), "maxItems": st.integers(1, 3)}
        ),
        st.lists(parts, min_size=1, max_size=2).map(lambda options: {"anyOf": options}),
    ),
    max_leaves=5,
)  # fmt: skip


REFUSED: list[tuple[object, str]] = [
    ({"type": "string", "pattern": "a"}, "keyword 'pattern' at $"),
    ({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}, "'minimum' at $.a"),
    ({"oneOf": [{}]}, "'oneOf' needs a 'type'"),
    ({"type": "decimal"}, "type 'decimal' is none of"),
    ({"type": []}, "empty list"),
    ({"enum": []}, "enum must be"),
    ({"enum": [1], "type": "string"}, "none of the values"),
    ({"type": "string", "minLength": 3, "maxLength": 2}, "less than minLength 3"),
    ({"type": "array", "maxItems": -1}, "maxItems must be a count"),
    ({"type": "array", "maxItems": True}, "maxItems must be a count"),
    ({"type": "object", "properties": {}, "required": ["a"]}, "which is no property"),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": {}}, "true or false only"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}, "holds itself"),
    ({"$ref": "#/$defs/none"}, "names nothing"),
    ({"$ref": "http://elsewhere/a"}, "definition of this schema"),
    ([], "write an object"),
    (False, "write an object"),
]  # fmt: skip


@cache
def token_texts() -> TokenTexts:
    return TokenTexts(Vocabulary(HuggingFaceTokenizer(models.TARGET)))


def grammar_of(part: Part) -> LanguageGrammar:
    end = token_texts().tokenizer.special("</s>")
    assert end is not None
    return LanguageGrammar(part, token_texts(), end, 400)


def walk(grammar: LanguageGrammar, seed: int, num: int = 300) -> str:
    """A document by tokens that are drawn; those that end something are drawn the more often the longer it is."""
    draw, state, tokens = random.Random(seed), grammar.start, list[int]()
    while state != grammar.done and len(tokens) < num:
        ids = grammar.steps[state].allowed.ids.tolist()
        assert ids
        if draw.random() < 0.5 + len(tokens) / 60:
            ids = [one for one in ids if one == 1 or (token_texts().pieces[one] or "x") in '"}]0'] or ids
        tokens.append(draw.choice(ids))
        state = grammar.advance(state, tokens[-1])
    assert state == grammar.done
    return grammar.fields(tokens)["text"]


@settings(deadline=None, max_examples=25)
@given(SCHEMAS, st.integers(0, 2**32))
def test_any_path_gives_a_document_of_the_schema(schema: Any, seed: int) -> None:
    jsonschema.validate(json.loads(walk(grammar_of(language_of(schema)), seed)), schema)


def test_paths_of_a_schema_end_and_differ() -> None:
    schema = {
        "type": "object",
        "properties": {"side": {"enum": ["up", "down"]}, "size": {"type": "integer"}},
        "required": ["side"],
    }
    grammar = grammar_of(language_of(schema))
    found = {walk(grammar, seed) for seed in range(40)}
    assert len(found) > 4
    for document in found:
        jsonschema.validate(json.loads(document), {**schema, "additionalProperties": False})


def test_any_object_is_an_object_and_may_be_empty() -> None:
    grammar = grammar_of(any_object())
    found = [walk(grammar, seed) for seed in range(60)]
    assert all(isinstance(json.loads(document), dict) for document in found)
    assert "{}" in found


def test_token_that_the_grammar_does_not_allow_is_an_error() -> None:
    grammar = grammar_of(language_of({"const": "x"}))
    (word,) = token_texts().tokenizer.encode("z")
    assert not grammar.allows(grammar.start, word)
    with pytest.raises(IntegrityError, match="not allowed"):
        grammar.advance(grammar.start, word)


def test_states_are_shared_whatever_the_bound() -> None:
    grammar = grammar_of(language_of({"const": [1, 2]}))
    short = grammar.bounded(3)
    assert walk(short, 0) == "[1,2]"
    assert (short.max_tokens, short.num_states) == (3, grammar.num_states)


def test_language_that_holds_itself_is_read_a_character_at_a_time() -> None:
    nested: Part = Sequence(one_of("("), Later(lambda: maybe), one_of(")"))
    maybe: Part = Choice(Sequence(), nested)
    at = start(nested)
    for character in "((":
        at = step(at, character)
        assert not at.may_end
    at = step(step(at, ")"), ")")
    assert at.may_end
    assert at.ways == ()


@pytest.mark.parametrize(("schema", "words"), REFUSED)
def test_what_is_not_kept_is_refused_by_name(schema: object, words: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        language_of(schema)
    assert words in str(raised.value)


def test_character_that_no_token_is_alone_comes_escaped() -> None:
    document = walk(grammar_of(language_of({"const": "€🙂"})), 0)
    assert document == r'"\u20ac\ud83d\ude42"'


def test_vocabulary_that_lacks_a_character_of_ascii_is_refused() -> None:
    texts = TokenTexts(Vocabulary(HuggingFaceTokenizer(models.TARGET)))
    texts.lacks.append("{")
    with pytest.raises(InvalidInput, match=r"no token for '\{' alone"):
        LanguageGrammar(any_object(), texts, 1, 10)


def test_schema_that_is_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(40):
        schema = {"type": "array", "items": schema}
    with pytest.raises(InvalidInput, match="deeper than 32"):
        language_of(schema)
