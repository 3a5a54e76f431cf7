"""Output grammars as automata: which are refused, what each step admits, how prompts become ids."""

import pytest

from htfi.decoding.grammar import MAX_CACHED_GRAMMARS, CompiledGrammar, GrammarCache
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


def pieces(form: CompiledGrammar, state: int, vocabulary: Vocabulary = MINI) -> set[str]:
    ids = form.steps[state].allowed.ids.tolist()
    return {vocabulary.tokenizer.piece(token) or f"special {token}" for token in ids}


def test_free_words_admit_letters_and_nothing_that_could_be_a_figure_or_a_command():
    form = CompiledGrammar((FreeTextField("words", 3, PlainText("\n")),), PLAIN)
    admitted = pieces(form, form.start, PLAIN)
    assert {"a", " rose sharply", ".", "%", "\n"} <= admitted
    assert not admitted & {"1", "½", "٣", "二", "\t", ".\n", "\x85", "\u202e", "\ufffd", "{", "}"}


def test_words_end_after_their_bound_and_the_rest_of_a_long_end_is_forced():
    form = CompiledGrammar(
        (
            FreeTextField("words", 2, PlainText("\nG:")),
            ChoiceField("c", ((PlainText("a"),), (PlainText("b"),))),
        ),
        PLAIN,
    )
    a, b, newline = (PLAIN.encode((PlainText(text),))[0] for text in ("a", "b", "\n"))
    cut, state = form.forced(form.advance(form.advance(form.start, a), b))
    assert PLAIN.tokenizer.decode(cut) == "\nG:"
    early, same = form.forced(form.advance(form.start, newline))
    assert PLAIN.tokenizer.decode(early) == "G:"
    assert same == state
    assert form.fields([a, b, *cut, b]) == {"words": "ab", "c": "1"}
    assert form.fields([newline, *early, a]) == {"words": "", "c": "0"}
    assert form.max_tokens == 2 + 3 + 1


def test_the_fields_of_an_answer_under_way_are_those_written_so_far():
    form = CompiledGrammar(
        (
            FreeTextField("words", 2, PlainText("\nG:")),
            ChoiceField("c", ((PlainText("a"),), (PlainText("b"),))),
        ),
        PLAIN,
    )
    a, b = (PLAIN.encode((PlainText(text),))[0] for text in ("a", "b"))
    ending = PLAIN.encode((PlainText("\nG:"),))
    assert form.fields_so_far([]) == {"words": ""}
    assert form.fields_so_far([a]) == {"words": "a"}
    assert form.fields_so_far([a, *ending]) == {"words": "a"}
    assert form.fields_so_far([a, b, *ending, b]) == {"words": "ab", "c": "1"}
    with pytest.raises(IntegrityError, match="not allowed"):
        form.fields_so_far([a, b, a])


def test_a_token_is_allowed_where_it_advances_and_transitions_list_every_next_state():
    grammar = CompiledGrammar(
        (
            FreeTextField("words", 2, PlainText("\n")),
            FixedField((PlainText(":"),)),
            ChoiceField("c", ((PlainText("a"),), (PlainText("bb"),))),
        ),
        PLAIN,
    )
    seen, pending = set[int](), [grammar.start]
    num_refused = 0
    while pending:
        state = pending.pop()
        if state == grammar.done or state in seen:
            continue
        seen.add(state)
        ids, nexts = grammar.transitions(state)
        following = dict(zip(ids.tolist(), nexts.tolist(), strict=True))
        for token in range(PLAIN.tokenizer.vocab_size):
            if token in following:
                assert grammar.allows(state, token) is True
                assert grammar.advance(state, token) == following[token]
            else:
                num_refused += 1
                assert grammar.allows(state, token) is False
                with pytest.raises(IntegrityError):
                    grammar.advance(state, token)
        pending += following.values()
    assert seen == set(range(grammar.done))
    assert num_refused > 0


def test_open_positions_name_the_field_of_each_token_that_was_not_forced():
    grammar = CompiledGrammar(
        (
            FreeTextField("words", 1, PlainText("\n")),
            ChoiceField("c", ((PlainText("a"),), (PlainText("b"),))),
        ),
        PLAIN,
    )
    a, b, newline = (PLAIN.encode((PlainText(text),))[0] for text in ("a", "b", "\n"))
    found = grammar.open_positions([a, newline, b])
    assert [(place, name) for place, _, name in found] == [(0, "words"), (2, "c")]
    assert [step.part for _, step, _ in found] == [0, 1]
    with pytest.raises(IntegrityError, match="end of its grammar"):
        grammar.open_positions([a, newline, b, a])
    with pytest.raises(IntegrityError, match="ends before"):
        grammar.fields([a, newline])


def test_an_option_that_begins_another_is_ended_by_what_follows():
    options = ((PlainText("a"),), (PlainText("ab"),), ())
    form = CompiledGrammar(
        (
            ChoiceField("c", options),
            FixedField((PlainText("."),)),
            ChoiceField("d", ((PlainText("a"),), (PlainText("b"),))),
        ),
        PLAIN,
    )
    for text, c, d in (("a.a", "0", "0"), ("ab.b", "1", "1"), (".a", "2", "0")):
        assert form.fields(PLAIN.encode((PlainText(text),))) == {"c": c, "d": d}
    with pytest.raises(IntegrityError):
        form.fields(PLAIN.encode((PlainText("b.a"),)))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ((ChoiceField("c", ((PlainText("a"),), (PlainText("ab"),))),), "prefix of another"),
        (
            (ChoiceField("c", ((PlainText("a"),), (PlainText("ab"),))), FixedField((PlainText("b"),))),
            "prefix of another",
        ),
        ((ChoiceField("c", ((PlainText("a"),), (PlainText("a"),))),), "same tokens"),
        ((ChoiceField("c", ()),), "no option"),
        ((FreeTextField("w", 3, PlainText("")),), "at least one token"),
        ((FreeTextField("w", -1, ControlToken("end")),), "bound"),
        ((FreeTextField("w", 3, ControlToken("end"), (ControlToken("end"),)),), "slot"),
        (
            (FreeTextField("w", 3, ControlToken("end")), FreeTextField("w", 3, ControlToken("end"))),
            "'w' twice",
        ),
        ((FixedField((ControlToken("nothing"),)),), "'<nothing>'"),
        ((FixedField((ScaledMoves((float("nan"),)),)),), "not finite"),
    ],
)
def test_a_form_that_cannot_be_written_is_refused_with_its_reason(form: OutputGrammar, message: str):
    with pytest.raises(InvalidInput, match=message):
        CompiledGrammar(form, MINI)


def test_a_slot_is_its_name_in_braces():
    form = CompiledGrammar((FreeTextField("w", 4, ControlToken("end"), (ControlToken("size"),)),), MINI)
    tokens = [*MINI.encode((PlainText(" up"), ControlToken("size"), PlainText("a"))), MINI.mark("end")]
    assert form.fields(tokens) == {"w": " up{size}a"}
    with pytest.raises(IntegrityError):
        form.fields([MINI.mark("symbol"), MINI.mark("end")])


def test_returns_are_price_tokens_where_there_are_some_and_words_elsewhere():
    assert MINI.bins is not None
    tokens = MINI.encode((ScaledMoves((-99.0, 0.0, 99.0)),))
    assert tokens == [MINI.tokenizer.special(f"<p{place}>") for place in (0, 4, 8)]
    assert PLAIN.tokenizer.decode(PLAIN.encode((ScaledMoves((0.34, -1.25, -0.01)),))) == " +0.3 -1.2 +0.0"


def test_a_grammar_is_compiled_once_and_the_least_recently_used_is_dropped():
    cache = GrammarCache(MINI)

    def grammar(num_tokens: int) -> OutputGrammar:
        return (FreeTextField("w", num_tokens, ControlToken("end")),)

    first, second = cache.compiled(grammar(1)), cache.compiled(grammar(2))
    assert cache.compiled(grammar(1)) is first
    for num_tokens in range(3, MAX_CACHED_GRAMMARS + 2):
        cache.compiled(grammar(num_tokens))
    assert cache.compiled(grammar(1)) is first
    assert cache.compiled(grammar(2)) is not second
