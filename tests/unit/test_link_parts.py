"""Parts by name, forms as bytes, and guesses by post: what is kept, what is resumed, what is dropped."""

import msgspec
import pytest

from htfi.decoding.link.frames import PartFrame, prefix_hash
from htfi.decoding.link.parts import (
    MAX_PART_BYTES,
    PartStore,
    decode_grammar,
    encode_grammar,
    part_name,
    request_name,
)
from htfi.decoding.link.server.remote_drafts import RemoteDraftStrategy
from htfi.decoding.sampling import SamplingParams
from htfi.decoding.sequence import SequenceState, TokenizedRequest
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import (
    ChoiceField,
    ControlToken,
    FixedField,
    FreeTextField,
    OutputGrammar,
    PlainText,
    ScaledMoves,
)
from outcome_pair import PATH, VIEW, author, requests


def part(data: bytes, offset: int = 0, end: int | None = None) -> PartFrame:
    return PartFrame(part_name(data), offset, len(data), data[offset:end])


def test_part_that_was_interrupted_goes_on_where_it_stopped_and_overlaps_do_no_harm():
    parts, data = PartStore(1_000, 4), bytes(range(100))
    assert parts.take("a", part(data, 0, 40)) == (None, 40)
    assert parts.missing_from("a", part_name(data)) == 40
    assert parts.take("a", part(data, 60)) == (None, 40)  # a gap
    assert parts.take("a", part(data, 20, 70)) == (None, 70)
    assert parts.missing_from("b", part_name(data)) == 0
    assert parts.take("a", part(data, 70)) == (data, 100)
    assert parts.get(part_name(data)) == data
    assert parts.num_bytes == 100


def test_part_that_is_not_what_its_name_says_is_refused_and_forgotten():
    parts, data = PartStore(1_000, 4), b"what was named"
    with pytest.raises(InvalidInput, match="do not match its name"):
        parts.take("a", PartFrame(part_name(data), 0, 5, b"other"))
    assert parts.num_bytes == 0
    assert parts.take("a", part(data)).whole == data
    parts.take("a", PartFrame(part_name(b"x" * 9), 0, 9, b"xx"))
    with pytest.raises(InvalidInput, match="now has 8"):
        parts.take("a", PartFrame(part_name(b"x" * 9), 2, 8, b"xx"))
    assert parts.num_bytes == len(data)


@pytest.mark.parametrize(
    "bad",
    [
        PartFrame(b"short", 0, 1, b"a"),
        PartFrame(bytes(16), -1, 5, b"a"),
        PartFrame(bytes(16), 4, 4, b"a"),
        PartFrame(bytes(16), 0, MAX_PART_BYTES + 1, b"a"),
    ],
)
def test_absurd_parts_are_refused(bad: PartFrame):
    with pytest.raises(InvalidInput):
        PartStore(1_000, 4).take("a", bad)


def test_who_sends_much_pushes_out_its_own_parts_alone():
    parts = PartStore(1_000, 4)
    mine = [bytes([1, i]) * 50 for i in range(3)]
    for data in mine:
        parts.take("modest", part(data))
    for i in range(50):
        parts.take("greedy", part(bytes([2, i]) * 100))
        parts.take("greedy", part(bytes([3, i]) * 300, 0, 150))
    assert all(parts.get(part_name(data)) == data for data in mine)
    assert parts.num_bytes <= 1_000


def test_the_least_recently_used_part_goes_first():
    parts = PartStore(250, 4)
    one, two, three = (bytes([i]) * 100 for i in range(3))
    parts.take("a", part(one))
    parts.take("a", part(two))
    parts.get(part_name(one))
    parts.take("a", part(three))
    assert parts.get(part_name(two)) is None
    assert parts.get(part_name(one)) == one


def test_request_is_named_after_all_that_its_answer_depends_on():
    prompt, form = [part_name(b"a"), part_name(b"b")], part_name(b"f")
    name = request_name(prompt, form, 3, SamplingParams(1.0))
    assert name == request_name(prompt, form, 3 + 2**64, SamplingParams(1))
    others = [
        request_name(prompt[::-1], form, 3, SamplingParams(1.0)),
        request_name(prompt[:1], form, 3, SamplingParams(1.0)),
        request_name([*prompt, form], prompt[0], 3, SamplingParams(1.0)),
        request_name(prompt, prompt[0], 3, SamplingParams(1.0)),
        request_name(prompt, form, 4, SamplingParams(1.0)),
        request_name(prompt, form, 3, SamplingParams(0.5)),
        request_name(prompt, form, 3, SamplingParams(1.0, 4)),
        request_name(prompt, form, 3, SamplingParams(1.0, 0, 0.5)),
    ]
    assert len({name, *others}) == 9


FORMS: list[OutputGrammar] = [
    PATH,
    VIEW,
    (
        FixedField((PlainText("é "), ScaledMoves((0.5, -1.25)), ControlToken("end"))),
        FreeTextField("w", 3, PlainText("."), (ControlToken("size"), ControlToken("up"))),
        ChoiceField("c", ((), (PlainText("a"),))),
    ),
]


@pytest.mark.parametrize("form", FORMS)
def test_form_comes_back_as_it_was(form: OutputGrammar):
    assert decode_grammar(encode_grammar(form)) == form


@pytest.mark.parametrize(
    "said",
    [
        [],
        [[9, "x"]],
        [[2, "w", 1 << 40, [1, "."], []]],
        [[2, "w", -1, [1, "."], []]],
        [[1, "c", [[]] * 5_000]],
        [[0, [[1, "a" * 70_000]]]],
        [[0, [[0, "m", "more"]]]],
        [[0, []]] * 2_000,
        [[2, "w", 9_000, [1, "."], []]],
        {"a": 1},
    ],
)
def test_what_is_no_form_of_bounded_size_is_refused(said: object):
    with pytest.raises(InvalidInput):
        decode_grammar(msgspec.msgpack.encode(said))


def test_form_of_text_that_is_not_unicode_is_refused_here():
    with pytest.raises(InvalidInput):
        encode_grammar((FixedField((PlainText("\ud800"),)),))


def stem() -> tuple[SequenceState, list[int]]:
    """An answer of which nothing is settled, and what it will be."""
    writer = author(None)
    (request,) = requests(1)
    asked = writer.tokenize(request)
    assert isinstance(asked, TokenizedRequest)
    (writing,) = writer.write([request])
    return SequenceState(asked, [], asked.grammar.start), list(writing.tokens)  # type: ignore[union-attr]


def post(posted: RemoteDraftStrategy, of: SequenceState, at: int, text: list[int], length: int) -> None:
    posted.post(of, at, prefix_hash(text[:at]), text[at : at + length])


def settle(of: SequenceState, tokens: list[int]) -> None:
    for token in tokens:
        of.append(token)


def test_windows_that_follow_each_other_make_one_chain_in_any_order():
    posted, (of, text) = RemoteDraftStrategy(), stem()
    post(posted, of, 8, text, 4)
    assert posted.fitting(of) is None
    post(posted, of, 4, text, 4)
    post(posted, of, 0, text, 4)
    assert posted.fitting(of) == text[:12]
    settle(of, text[:6])
    assert posted.fitting(of) == text[6:12]
    (tree,) = posted.speculate([of], [3])
    assert tree.tokens == text[6:9]
    assert posted.num_dropped == 0


def test_window_after_a_guess_that_did_not_stand_is_dropped_and_the_next_takes_its_place():
    posted, (of, text) = RemoteDraftStrategy(), stem()
    wrong = [*text[:3], text[3] - 1, *text[4:]]
    post(posted, of, 0, wrong, 6)
    post(posted, of, 6, wrong, 6)
    assert posted.fitting(of) == wrong[:12]
    settle(of, text[:5])
    assert posted.fitting(of) is None
    post(posted, of, 5, text, 3)
    assert posted.fitting(of) == text[5:8]
    settle(of, text[5:7])
    assert posted.fitting(of) == text[7:8]
    assert posted.num_dropped == 2


def test_window_with_no_guesses_that_fits_says_so():
    posted, (of, text) = RemoteDraftStrategy(), stem()
    post(posted, of, 0, text, 0)
    assert posted.fitting(of) == []
    settle(of, text[:1])
    assert posted.fitting(of) is None


def test_guesses_that_leave_the_form_are_cut():
    posted, (of, text) = RemoteDraftStrategy(), stem()
    posted.post(of, 0, 0, [*text[:2], 3, *text[3:5]])
    (tree,) = posted.speculate([of], [9])
    assert tree.tokens == text[:2]
    posted.finish(of)
    assert posted.fitting(of) is None


def test_windows_that_wait_for_one_answer_are_bounded():
    posted, (of, text) = RemoteDraftStrategy(), stem()
    for _ in range(200):
        posted.post(of, 9, 1, text[9:])
    assert posted.num_dropped >= 200 - 64
