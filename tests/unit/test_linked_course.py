"""What is to be done for a request, and what a round is told as: decisions without a link, a clock or a network."""

import math

import numpy as np
import pytest

from htfi.decoding.config import DecodingConfig, EdgeConfig
from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.grammar import CompiledGrammar
from htfi.decoding.link.client.next_action import NetworkConditions, RequestAction, next_action, next_change_s
from htfi.decoding.link.client.request import (
    CloudAttempt,
    FrameEffect,
    InFlightRequest,
    WireRequest,
    observe_round,
)
from htfi.decoding.link.frames import AcceptedFrame, DraftMode, pack, prefix_hash
from htfi.decoding.link.ports import PlannedPlacement
from htfi.decoding.sequence import SequenceState, TokenizedRequest
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import ChoiceField, ControlToken, DraftRound, OutputGrammar
from linked_world import TOKENIZER, VIEW, VOCAB, local, question
from tiny_network import TinyNetwork

CONFIG = EdgeConfig(
    margin_ms=10.0, reconnect_wait_ms=100.0, hello_timeout_ms=200.0, hedge_ms=50.0, quiet_ms=400.0
)
CALM = NetworkConditions(0.0, ["a", "b"], ["a", "b"], False, 0.02)


def asked(seed: int = 1, form: OutputGrammar | None = None) -> TokenizedRequest:
    found = local().tokenize(question(seed) if form is None else question(seed, form))
    assert isinstance(found, TokenizedRequest)
    return found


def pursuit(until_s: float = 1.0, *clouds: str) -> InFlightRequest:
    found = InFlightRequest(asked(), WireRequest.of(asked()), 0.0, until_s)
    for number, cloud in enumerate(clouds):
        placed = PlannedPlacement(cloud, DraftMode.PIPELINED, 4, 3, 10.0, 20.0, "")
        found.attempts.append(CloudAttempt(cloud, f"{cloud}#0", number, found.next_epoch(), placed, 0.0, 0.0))
    return found


def act(of: InFlightRequest, weather: NetworkConditions) -> RequestAction:
    return next_action(of, weather, CONFIG).action


def test_a_new_request_is_opened_where_it_is_free():
    assert next_action(pursuit(), CALM, CONFIG).clouds == ("a", "b")
    of = pursuit()
    of.retry_at_s["a"] = 0.5
    assert next_action(of, CALM, CONFIG).clouds == ("b",)
    assert next_action(of, CALM._replace(now_s=0.5), CONFIG).clouds == ("a", "b")


def test_a_request_goes_alone_when_what_that_takes_is_left():
    for ways in ((), ("a",), ("a", "b")):
        of = pursuit(1.0, *ways)
        assert act(of, CALM._replace(now_s=0.969)) is not RequestAction.ALONE
        assert act(of, CALM._replace(now_s=0.971)) is RequestAction.ALONE
    assert next_change_s(pursuit(1.0, "a", "b"), CALM._replace(now_s=0.8), CONFIG) == pytest.approx(0.97)


def test_a_second_cloud_is_asked_when_the_first_is_late_and_no_third():
    late = CALM._replace(now_s=0.051)
    assert act(pursuit(1.0, "a"), CALM._replace(now_s=0.049)) is RequestAction.WAIT
    assert next_action(pursuit(1.0, "a"), late, CONFIG).clouds == ("b",)
    assert act(pursuit(1.0, "a"), late) is RequestAction.HEDGE
    assert act(pursuit(1.0, "a", "b"), late._replace(taking=["a", "b", "c"])) is RequestAction.WAIT
    assert act(pursuit(1.0, "a"), late._replace(taking=["a"])) is RequestAction.WAIT
    assert next_change_s(pursuit(1.0, "a"), CALM, CONFIG) == pytest.approx(0.05)


def test_a_cloud_that_is_given_up_is_left_and_one_that_drains_is_not():
    gone = CALM._replace(usable=["b"], taking=["b"])
    assert act(pursuit(1.0, "a"), gone) is RequestAction.MOVE
    assert act(pursuit(1.0, "a", "b"), gone) is RequestAction.WAIT
    assert act(pursuit(1.0, "a"), CALM._replace(usable=[], taking=[])) is RequestAction.ALONE
    assert act(pursuit(1.0, "a"), CALM._replace(taking=["b"])) is RequestAction.WAIT
    late = pursuit(1.0, "a")
    late.is_late = True
    assert act(late, CALM._replace(usable=[], taking=[])) is RequestAction.WAIT


def test_a_silent_cloud_is_asked_again_after_ever_longer_times():
    of = pursuit(9.0, "a", "b")
    for way in of.attempts:
        way.last_frame_s = 1.0
    assert act(of, CALM._replace(now_s=1.39)) is RequestAction.WAIT
    assert act(of, CALM._replace(now_s=1.41)) is RequestAction.ASK_AGAIN
    for way in of.attempts:
        way.num_repeats = 2
    assert act(of, CALM._replace(now_s=2.59)) is RequestAction.WAIT
    assert act(of, CALM._replace(now_s=2.61)) is RequestAction.ASK_AGAIN


def test_without_a_cloud_there_are_reasons_to_wait_and_bounds_to_them():
    none = CALM._replace(usable=[], taking=[])
    assert next_action(pursuit(), none, CONFIG) == (RequestAction.ALONE, (), "no cloud is reachable")
    lost = pursuit()
    lost.lost_s = 0.0
    assert act(lost, none._replace(now_s=0.09)) is RequestAction.WAIT
    assert act(lost, none._replace(now_s=0.11)) is RequestAction.ALONE
    assert act(pursuit(), none._replace(is_greeting=True, now_s=0.19)) is RequestAction.WAIT
    assert act(pursuit(), none._replace(is_greeting=True, now_s=0.21)) is RequestAction.ALONE
    busy = pursuit()
    busy.retry_at_s |= {"a": 0.5, "b": 2.0}
    assert act(busy, CALM) is RequestAction.WAIT
    assert next_change_s(busy, CALM, CONFIG) == pytest.approx(0.2)  # it looks again sooner than it must
    busy.retry_at_s["a"] = math.inf
    assert next_action(busy, CALM, CONFIG) == (RequestAction.ALONE, (), "every cloud refuses it")


def test_a_late_request_waits_for_clouds_and_is_given_up_at_last():
    of = pursuit(5.0)
    of.is_late = True
    assert act(of, CALM) is RequestAction.OPEN
    assert act(of, CALM._replace(usable=[], taking=[])) is RequestAction.WAIT
    assert act(of, CALM._replace(now_s=5.0)) is RequestAction.GIVE_UP
    of.refusal = "too long"
    assert next_action(of, CALM, CONFIG) == (RequestAction.GIVE_UP, (), "too long")


def settled(
    way: CloudAttempt, tokens: list[int], at: int = 0, epoch: int = -1, **wrong: object
) -> AcceptedFrame:
    fields = {
        "handle": way.handle,
        "epoch": way.epoch if epoch < 0 else epoch,
        "at": at,
        "prefix": prefix_hash(tokens),
        "num_accepted": -1,
        "is_done": False,
        "ids": pack(tokens[at:]),
    }
    return AcceptedFrame(**(fields | wrong))  # type: ignore[arg-type]


def test_only_tokens_that_fit_to_the_last_are_taken():
    of = pursuit(1.0, "a")
    (way,), tokens = of.attempts, list(range(93, 97))
    assert of.apply(way, settled(way, tokens[:2]), 0.1) is FrameEffect.NEWS
    for frame in (
        settled(way, [94, 93], 0),  # another token
        settled(way, tokens, 2, prefix=7),  # another text before it
        settled(way, tokens, 2, is_done=True),
        settled(way, [*tokens[:2], 1], 2),  # not of the form
        settled(way, tokens, 2, ids=b"\x05xx"),
        settled(way, tokens, -1),
    ):
        assert of.apply(way, frame, 0.1) is FrameEffect.WRONG
        assert of.sequence.tokens == tokens[:2]
    assert of.apply(way, settled(way, tokens, 3), 0.1) is FrameEffect.GAP
    assert of.apply(way, settled(way, tokens, epoch=0), 0.1) is FrameEffect.STALE
    assert of.apply(way, settled(way, tokens[:1]), 0.1) is FrameEffect.NOTHING
    assert of.apply(way, settled(way, tokens, 1), 0.2) is FrameEffect.NEWS
    assert of.sequence.tokens == tokens
    assert (way.first_s, way.num_tokens) == (0.1, 4)


def test_what_is_settled_keeps_the_guesses_that_agree_and_no_others():
    of = pursuit(1.0, "a")
    (way,) = of.attempts
    guessed = [93, 94, 95, 96, 97, 98, 99, 93, 94, 95, 96, 97]
    for begin in range(0, 12, 4):
        assert of.num_wanted == 4
        of.add_draft(guessed[begin : begin + 4], begin + 4)
        window = of.next_window()
        assert window is not None
        assert (window[1].at, window[1].prefix) == (begin, prefix_hash(guessed[:begin]))
    assert of.num_wanted == 4  # one window in reserve
    of.add_draft([93, 93, 93, 93], 16)
    assert of.num_wanted == 0
    assert of.next_window() is None  # three are in flight
    of.apply(way, settled(way, guessed[:5], num_accepted=4), 0.1)
    window = of.next_window()
    assert window is not None
    assert window[1].at == 12
    of.apply(way, settled(way, [*guessed[:7], 101], 5, num_accepted=2), 0.1)
    assert of.drafted.tokens == of.sequence.tokens == [*guessed[:7], 101]
    assert of.diverged_at == 7
    assert of.next_window() is None
    assert of.num_wanted == 4
    assert of.rounds == [
        DraftRound(tuple(guessed[1:4]), (), (0, 1, 2), 97),
        DraftRound(tuple(guessed[5:8]), (), (0, 1), 101),
    ]
    assert (of.num_drafted, of.num_accepted) == (6, 5)


def test_in_lock_step_what_was_not_read_of_a_window_is_sent_again():
    of = pursuit(1.0, "a")
    (way,) = of.attempts
    way.placed = way.placed._replace(draft_mode=DraftMode.LOCKSTEP)
    of.add_draft([93, 94, 95, 96], 4)
    assert of.next_window() is not None
    assert of.num_wanted == 0
    of.apply(way, settled(way, [93]), 0.1)  # of the prompt
    assert of.next_window() is None
    of.apply(way, settled(way, [93, 94, 95], 1, num_accepted=1), 0.2)
    window = of.next_window()
    assert window is not None
    assert (window[1].at, window[1].ids) == (3, pack([96]))


PAIRS: OutputGrammar = tuple(
    ChoiceField(f"s{i}", tuple((ControlToken(f"p{k}"), ControlToken("end")) for k in range(9)))
    for i in range(6)
)


@pytest.mark.parametrize(
    ("new", "guesses", "is_first", "told"),
    [
        ("a.", "", True, None),
        ("a.b.", "", True, ("", 0, "b")),
        ("a.", "", False, ("", 0, "a")),
        ("a.", "b.c.", False, ("b.c.", 0, "a")),
        ("a.b.", "a.c.", False, ("a.c.", 2, "b")),
        ("a.b.c.", "a.b.", False, ("a.b.", 4, "c")),
        ("a.b.c.", "a.b.c.d.", False, ("a.b.", 4, "c")),  # more was guessed than was read
        ("a.b.c.", "", False, ("a.b.", 4, "c")),  # a draft's that nobody saw
        ("a.b.c.", "x", False, ("a.b.", 4, "c")),
        ("a.b.", "a.b.", True, ("", 0, "b")),
        ("a.b.c.d.e.f.", "a.b.c.d.e.f.", False, ("a.b.c.d.e.f.", 12, "")),
    ],
)
def test_a_round_is_told_so_that_it_can_be_verified_again(
    new: str, guesses: str, is_first: bool, told: tuple[str, int, str] | None
):
    vocabulary = Vocabulary(TOKENIZER)
    form = CompiledGrammar(PAIRS, vocabulary)

    def ids(text: str) -> list[int]:
        return [
            vocabulary.mark("end") if character == "." else vocabulary.mark(f"p{ord(character) % 9}")
            for character in text
        ]

    found = observe_round(form, form.start, ids(new), ids(guesses), is_first)
    if told is None:
        assert found == (None, 0, 0)
        return
    drafted, num_stood, token = told
    assert found.recorded == DraftRound(
        tuple(ids(drafted)), (), tuple(range(num_stood)), ids(token)[0] if token else -1
    )
    assert 0 <= found.num_accepted <= found.num_drafted <= len(guesses)


def test_a_chain_goes_on_rightly_from_guesses_that_were_put_right():
    rng = np.random.Generator(np.random.PCG64(3))
    config = DecodingConfig(batch_bytes=2**22)
    chain = ChainStrategy(KVSessions(TinyNetwork(VOCAB, 4), config))
    stem = SequenceState(asked(2), [], 0)
    for _ in range(40):
        fresh = ChainStrategy(KVSessions(TinyNetwork(VOCAB, 4), config))
        (tree,) = chain.speculate([stem], [int(rng.integers(1, 5))])
        assert isinstance(tree, DraftTree)
        again = SequenceState(stem.tokenized, list(stem.tokens), stem.state)
        (other,) = fresh.speculate([again], [tree.depth])
        assert tree.tokens == other.tokens
        stem.tokens += tree.tokens
        if len(stem.tokens) > 16 or rng.random() < 0.5:  # some guess was wrong
            at = int(rng.integers(0, len(stem.tokens)))
            del stem.tokens[at:]
            stem.tokens.append(int(rng.integers(93, 102)))
            chain.rewind(stem, at)
        stem.state = len(stem.tokens)
    chain.finish(stem)
    assert chain._rows.sessions.arena.num_rows == 0


def test_the_same_question_has_the_same_name_and_shares_its_parts():
    one, same = WireRequest.of(asked(1)), WireRequest.of(asked(1))
    other, longer = WireRequest.of(asked(2)), WireRequest.of(asked(1, VIEW))
    assert one == same
    assert one.prompt[0] == other.prompt[0]
    assert one.prompt[1] != other.prompt[1]
    assert one.grammar == other.grammar != longer.grammar
    assert len({one.name, other.name, longer.name}) == 3
    assert set(one.parts) == {*one.prompt, one.grammar}
