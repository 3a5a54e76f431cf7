"""Forms as automata: which are refused, what each step admits, how prompts become ids."""

import pytest

from htfi.decoding.form import CompiledForm, Forms
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.writing import Choice, Fixed, Form, Mark, Sigmas, Text, Words
from tiny_network import TinyTokenizer

MINI, PLAIN = Vocabulary(TinyTokenizer()), Vocabulary(TinyTokenizer(marks=False))


def pieces(form: CompiledForm, state: int, vocabulary: Vocabulary = MINI) -> set[str]:
    ids = form.steps[state].admitted.ids.tolist()
    return {vocabulary.tokenizer.piece(token) or f"special {token}" for token in ids}


def test_free_words_admit_letters_and_nothing_that_could_be_a_figure_or_a_command():
    form = CompiledForm((Words("words", 3, Text("\n")),), PLAIN)
    admitted = pieces(form, form.start, PLAIN)
    assert {"a", " rose sharply", ".", "%", "\n"} <= admitted
    assert not admitted & {"1", "½", "٣", "二", "\t", ".\n", "\x85", "\u202e", "\ufffd", "{", "}"}


def test_words_end_after_their_bound_and_the_rest_of_a_long_end_is_forced():
    form = CompiledForm((Words("words", 2, Text("\nG:")), Choice("c", ((Text("a"),), (Text("b"),)))), PLAIN)
    a, b, newline = (PLAIN.encode((Text(text),))[0] for text in ("a", "b", "\n"))
    cut, state = form.forced(form.advance(form.advance(form.start, a), b))
    assert PLAIN.tokenizer.decode(cut) == "\nG:"
    early, same = form.forced(form.advance(form.start, newline))
    assert PLAIN.tokenizer.decode(early) == "G:"
    assert same == state
    assert form.fields([a, b, *cut, b]) == {"words": "ab", "c": "1"}
    assert form.fields([newline, *early, a]) == {"words": "", "c": "0"}
    assert form.longest == 2 + 3 + 1


def test_an_option_that_begins_another_is_ended_by_what_follows():
    options = ((Text("a"),), (Text("ab"),), ())
    form = CompiledForm(
        (Choice("c", options), Fixed((Text("."),)), Choice("d", ((Text("a"),), (Text("b"),)))), PLAIN
    )
    for text, c, d in (("a.a", "0", "0"), ("ab.b", "1", "1"), (".a", "2", "0")):
        assert form.fields(PLAIN.encode((Text(text),))) == {"c": c, "d": d}
    with pytest.raises(IntegrityError):
        form.fields(PLAIN.encode((Text("b.a"),)))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ((Choice("c", ((Text("a"),), (Text("ab"),))),), "begins another"),
        ((Choice("c", ((Text("a"),), (Text("ab"),))), Fixed((Text("b"),))), "begins another"),
        ((Choice("c", ((Text("a"),), (Text("a"),))),), "same tokens"),
        ((Choice("c", ()),), "no option"),
        ((Words("w", 3, Text("")),), "at least one token"),
        ((Words("w", -1, Mark("end")),), "bound"),
        ((Words("w", 3, Mark("end"), (Mark("end"),)),), "slot"),
        ((Words("w", 3, Mark("end")), Words("w", 3, Mark("end"))), "'w' twice"),
        ((Fixed((Mark("nothing"),)),), "'<nothing>'"),
        ((Fixed((Sigmas((float("nan"),)),)),), "not finite"),
    ],
)
def test_a_form_that_cannot_be_written_is_refused_with_its_reason(form: Form, message: str):
    with pytest.raises(InvalidInput, match=message):
        CompiledForm(form, MINI)


def test_a_slot_is_its_name_in_braces():
    form = CompiledForm((Words("w", 4, Mark("end"), (Mark("size"),)),), MINI)
    tokens = [*MINI.encode((Text(" up"), Mark("size"), Text("a"))), MINI.mark("end")]
    assert form.fields(tokens) == {"w": " up{size}a"}
    with pytest.raises(IntegrityError):
        form.fields([MINI.mark("symbol"), MINI.mark("end")])


def test_returns_are_price_tokens_where_there_are_some_and_words_elsewhere():
    assert MINI.bins is not None
    tokens = MINI.encode((Sigmas((-99.0, 0.0, 99.0)),))
    assert tokens == [MINI.tokenizer.special(f"<p{place}>") for place in (0, 4, 8)]
    assert PLAIN.tokenizer.decode(PLAIN.encode((Sigmas((0.34, -1.25, -0.01)),))) == " +0.3 -1.2 +0.0"


def test_a_form_is_compiled_once():
    forms = Forms(MINI)
    form: Form = (Words("w", 4, Mark("end")),)
    assert forms.compiled(form) is forms.compiled((Words("w", 4, Mark("end")),))
