"""The cloud's desk: what it answers, whom it refuses and why, what it does when edges come and go."""

import pytest
from msgspec.structs import replace

from htfi.decoding.config import DecodingConfig, VerificationServerConfig
from htfi.decoding.link import frames
from htfi.decoding.link.frames import (
    PROTOCOL,
    AcceptedFrame,
    CancelFrame,
    DraftMode,
    DraftWindowFrame,
    NeedFrame,
    PartFrame,
    RefusalReason,
)
from htfi.decoding.link.parts import part_name, request_name
from htfi.decoding.link.server.server import VerificationServer
from htfi.decoding.sampling import SamplingParams
from htfi.domain.generation import PlainText
from htfi.scheduling.config import TurnsConfig
from outcome_pair import VIEW, requests
from server_world import LATE, Edge, Time, deliver, desk, run, truth
from tiny_network import TinyNetwork

(PATH_ASKED,) = requests(1)
(VIEW_ASKED,) = requests(1, VIEW)
PATH_TEXT = list(truth(PATH_ASKED).tokens)


@pytest.mark.parametrize("lead", list(DraftMode))
@pytest.mark.parametrize("has_draft", [False, True])
def test_answer_is_the_embedded_authors_whoever_leads(lead: DraftMode, has_draft: bool):
    time = Time()
    cloud = desk(has_draft=has_draft, time=time)
    edge = Edge(cloud)
    asked = [*requests(3), *requests(3, VIEW)]
    for handle, request in enumerate(asked):
        edge.say(edge.opening(request, handle, lead))
    for _ in range(30):  # in lock-step no window comes
        run(cloud, edge)
        time.now_s += 1.0
    assert {handle: tuple(text) for handle, text in edge.done.items()} == {
        handle: truth(request).tokens for handle, request in enumerate(asked)
    }
    assert not edge.refused()
    assert cloud.is_idle


def test_guesses_that_stand_settle_many_tokens_a_pass():
    cloud = desk()
    edge = Edge(cloud)
    edge.say(edge.opening(PATH_ASKED, lead=DraftMode.PIPELINED))
    deliver(cloud, edge)
    cloud.step()  # the prompt
    for at in range(0, len(PATH_TEXT), 5):
        edge.say(edge.window(1, at, PATH_TEXT, 5))
    assert run(cloud, edge) <= 3
    assert edge.done[1] == PATH_TEXT
    assert max(frame.num_accepted for frame in edge.heard if isinstance(frame, AcceptedFrame)) >= 5


def test_lock_step_waits_for_its_window_and_no_longer_than_the_bound():
    time = Time()
    cloud = desk(VerificationServerConfig(window_ms=100.0), time=time)
    edge = Edge(cloud)
    edge.say(edge.opening(PATH_ASKED, lead=DraftMode.LOCKSTEP, guesses=PATH_TEXT[:4]))
    run(cloud, edge)
    assert edge.texts[1, 0] == PATH_TEXT[:5]
    assert 0.0 < (cloud.next_s() or 0.0) <= 0.1
    edge.say(edge.window(1, 5, PATH_TEXT, 4))
    run(cloud, edge)
    assert edge.texts[1, 0] == PATH_TEXT[:10]
    time.now_s += 0.2
    run(cloud, edge)
    assert edge.done[1] == PATH_TEXT


def test_wrong_guesses_cost_no_waiting_in_flight():
    cloud = desk()
    edge = Edge(cloud)
    wrong = PATH_TEXT[::-1]
    edge.say(edge.opening(PATH_ASKED, lead=DraftMode.PIPELINED, guesses=wrong))
    edge.say(*(edge.window(1, at, wrong, 4) for at in range(0, 16, 4)))
    run(cloud, edge)
    assert edge.done[1] == PATH_TEXT


def test_parts_travel_once_and_what_was_interrupted_is_resumed():
    cloud = desk()
    first, second = Edge(cloud, "s1"), Edge(cloud, "s2")
    opening = first.opening(VIEW_ASKED)
    form = first.parts[opening.grammar]
    first.say(PartFrame(opening.grammar, 0, len(form), form[:10]), opening)
    needs: list[NeedFrame] = []
    deliver(cloud, first)
    needs = [frame for frame in first.heard if isinstance(frame, NeedFrame)]
    assert {(need.name, need.offset) for need in needs} == {
        (name, 10 if name == opening.grammar else 0) for name in (*opening.prompt, opening.grammar)
    }
    run(cloud, first)
    assert tuple(first.done[1]) == truth(VIEW_ASKED).tokens
    second.say(second.opening(replace(VIEW_ASKED, seed=5)))
    run(cloud, second)
    assert tuple(second.done[1]) == truth(replace(VIEW_ASKED, seed=5)).tokens
    assert not [frame for frame in second.heard if isinstance(frame, NeedFrame)]


def test_request_whose_parts_never_come_is_refused_in_time():
    time = Time()
    cloud = desk(VerificationServerConfig(parts_ms=50.0), time=time)
    edge = Edge(cloud)
    edge.say(edge.opening(VIEW_ASKED))
    edge.parts.clear()
    deliver(cloud, edge)
    time.now_s += 0.1
    run(cloud, edge)
    assert [frame.reason for frame in edge.refused()] == [RefusalReason.STALE]
    assert cloud.is_idle


def test_same_question_of_two_edges_is_written_once():
    cloud = desk()
    one, two = Edge(cloud, "s1", "edge1"), Edge(cloud, "s2", "edge2")
    one.say(one.opening(PATH_ASKED))
    deliver(cloud, one, two)
    cloud.step()
    two.say(two.opening(PATH_ASKED, handle=9))
    run(cloud, one, two)
    assert one.done[1] == two.done[9] == PATH_TEXT
    assert cloud.scheduler.engine.counts.num_answers == 1
    num_passes = cloud.metrics.num_passes
    again = Edge(cloud, "s3", "edge1")
    again.say(again.opening(PATH_ASKED))
    deliver(cloud, again)
    assert again.done[1] == PATH_TEXT
    assert cloud.metrics.num_passes == num_passes


def test_answer_of_a_stream_that_went_down_waits_for_the_retry():
    cloud = desk()
    edge = Edge(cloud)
    edge.say(edge.opening(PATH_ASKED, lead=DraftMode.LOCKSTEP))
    run(cloud, edge)
    edge.down()
    run(cloud)
    assert cloud.is_idle
    back = Edge(cloud, "s2")
    back.say(back.opening(PATH_ASKED, guesses=PATH_TEXT[:3]))
    deliver(cloud, back)
    assert back.done[1] == PATH_TEXT


def test_orphans_are_bounded_and_a_request_that_is_left_is_given_up():
    cloud = desk(VerificationServerConfig(max_orphans=2))
    edge, other = Edge(cloud), Edge(cloud, "s2")
    for handle, request in enumerate(requests(4)):
        edge.say(edge.opening(request, handle))
    other.say(other.opening(VIEW_ASKED))
    deliver(cloud, edge, other)
    other.say(CancelFrame(1, 0))
    edge.down()
    assert cloud.metrics.num_waiting == 2
    run(cloud)
    assert cloud.scheduler.engine.counts.num_answers == 2
    assert cloud.scheduler.engine.sessions.arena.num_rows == 0


def test_higher_epoch_changes_a_request_in_place_and_tells_all_again():
    cloud = desk()
    edge = Edge(cloud)
    edge.say(edge.opening(PATH_ASKED, lead=DraftMode.LOCKSTEP, guesses=PATH_TEXT[:4]))
    run(cloud, edge)
    edge.say(edge.opening(PATH_ASKED, lead=DraftMode.PLAIN, epoch=3))
    edge.say(edge.window(1, 5, PATH_TEXT, 4, epoch=0), edge.window(1, 5, PATH_TEXT, 4, epoch=2))
    run(cloud, edge)
    assert edge.texts[1, 0] == PATH_TEXT[:5]
    assert edge.texts[1, 3] == edge.done[1] == PATH_TEXT
    assert [frame.reason for frame in edge.refused()] == [RefusalReason.STALE]
    assert cloud.metrics.num_stale == 2
    assert cloud.scheduler.engine.counts.num_answers == 1


def test_epoch_that_crosses_the_end_of_its_answer_is_answered_again():
    cloud = desk()
    edge = Edge(cloud)
    edge.say(edge.opening(PATH_ASKED))
    run(cloud, edge)
    edge.say(edge.opening(PATH_ASKED, epoch=1))
    run(cloud, edge)
    assert edge.texts[1, 1] == PATH_TEXT


def test_spent_budget_ends_guessing_and_not_the_answer():
    cloud = desk()
    edge = Edge(cloud)
    edge.say(edge.opening(PATH_ASKED, lead=DraftMode.LOCKSTEP, budget_bytes=200, guesses=PATH_TEXT[:2]))
    run(cloud, edge)
    edge.say(edge.window(1, 3, PATH_TEXT, 2))
    run(cloud, edge)
    assert edge.done[1] == PATH_TEXT
    assert not edge.refused()


def test_flood_beyond_the_budget_is_refused_by_name():
    cloud = desk()
    edge = Edge(cloud)
    edge.say(edge.opening(PATH_ASKED, lead=DraftMode.LOCKSTEP, budget_bytes=200))
    for at in range(60):
        edge.say(edge.window(1, at % 16, PATH_TEXT, 4))
    deliver(cloud, edge)
    assert [(frame.handle, frame.reason) for frame in edge.refused()] == [(1, RefusalReason.BUDGET)]
    run(cloud, edge)
    assert cloud.is_idle


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"version": PROTOCOL + 1}, RefusalReason.VERSION),
        ({"target": "beef"}, RefusalReason.DIGEST),
        ({"tokenizer": "1" * 64}, RefusalReason.DIGEST),
        ({"node": "edge2"}, RefusalReason.IDENTITY),
        ({"node": ""}, RefusalReason.IDENTITY),
    ],
)
def test_edge_that_is_not_what_it_should_be_is_told_why_and_dropped(
    changes: dict[str, object], why: RefusalReason
):
    cloud = desk()
    edge = Edge(cloud, greets=False)
    edge.say(edge.hello(**changes))
    edge.say(edge.opening(PATH_ASKED))
    deliver(cloud, edge)
    assert [frame.reason for frame in edge.refused()] == [why]
    assert edge.dropped
    assert str(PROTOCOL + 1) in edge.dropped or why is not RefusalReason.VERSION
    edge.say(edge.hello())  # not heard any more
    deliver(cloud, edge)
    assert len(edge.heard) == 1


def test_welcome_tells_whose_weights_these_are():
    cloud = desk(VerificationServerConfig(node="cloud9", residency=("eu",)), has_draft=True)
    edge = Edge(cloud, greets=False)
    edge.say(edge.hello(target=cloud.scheduler.engine.digest[:8]))
    deliver(cloud, edge)
    welcome = edge.welcome
    assert (welcome.node, welcome.incarnation, welcome.has_draft, welcome.residency) == (
        "cloud9",
        7,
        True,
        ("eu",),
    )
    assert welcome.target == cloud.scheduler.engine.digest


def test_data_goes_only_where_its_tags_are_admitted():
    cloud = desk(VerificationServerConfig(residency=("eu",)))
    edge = Edge(cloud)
    edge.say(
        edge.opening(PATH_ASKED, 1, residency=("eu", "bank")), edge.opening(PATH_ASKED, 2, residency=("eu",))
    )
    run(cloud, edge)
    assert [(frame.handle, frame.reason) for frame in edge.refused()] == [(1, RefusalReason.RESIDENCY)]
    assert edge.done == {2: PATH_TEXT}


def test_request_under_the_name_of_another_is_refused():
    cloud = desk()
    edge = Edge(cloud)
    other = edge.opening(VIEW_ASKED)
    edge.say(replace(edge.opening(PATH_ASKED), request=other.request))
    run(cloud, edge)
    assert [frame.reason for frame in edge.refused()] == [RefusalReason.MALFORMED]


def test_bad_requests_are_refused_by_name_and_touch_nothing_else():
    cloud = desk(VerificationServerConfig(max_strikes=100))
    edge = Edge(cloud)
    good = edge.opening(PATH_ASKED, 0)
    edge.say(good)
    name = good.prompt[0]

    def with_parts(handle: int, ids: bytes, form: bytes) -> frames.OpenFrame:
        edge.parts |= {part_name(ids): ids, part_name(form): form}
        names = (part_name(ids),)
        request = request_name(names, part_name(form), 0, SamplingParams())
        return replace(
            good,
            handle=handle,
            request=request,
            prompt=names,
            grammar=part_name(form),
            seed=0,
            temperature=0.0,
        )

    form = edge.parts[good.grammar]
    far = frames.pack([TOO_LARGE])
    edge.say(
        with_parts(1, far, form),
        with_parts(2, b"\x07\x01", form),
        with_parts(3, frames.pack([1, 2]), b"\x90"),
        with_parts(4, frames.pack([1, 2]), b"no form"),
        replace(good, handle=5, draft_mode=9),
        replace(good, handle=6, temperature=float("nan")),
        replace(good, handle=7, prompt=()),
        replace(good, handle=8, prompt=(name[:4],)),
        replace(good, handle=9, guesses=frames.pack([1] * 17)),
        replace(good, handle=10, deadline_ms=-1),
        with_parts(11, frames.pack([1] * 600), form),
        replace(good, handle=-5),
    )
    edge.say(
        DraftWindowFrame(0, 0, 15, 0, frames.pack([1, 1])),
        DraftWindowFrame(0, 0, -1, 0, b""),
        DraftWindowFrame(0, 0, 0, 0, far),
    )
    edge.say(
        DraftWindowFrame(0, 0, 0, 0, b"\x09\x09"),
        DraftWindowFrame(77, 0, 0, 0, b""),
        DraftWindowFrame(0, 4, 0, 0, b""),
    )
    edge.say(
        PartFrame(b"short", 0, 3, b"abc"), PartFrame(name, 0, 1 << 60, b"a"), PartFrame(name, 5, 4, b"abc")
    )
    edge.say(PartFrame(bytes(16), 0, 3, b"abc"), NeedFrame(name, 0), edge.hello())
    edge.raw(b"garbage")
    edge.raw(b"\x95\x01\x01\xa1\xce\xa0\xa0")  # a greeting whose text is no UTF-8
    edge.raw(b"")
    run(cloud, edge)
    refused = {frame.handle for frame in edge.refused()}
    assert set(range(1, 12)) | {-5, -1, 77} <= refused
    assert edge.done == {0: PATH_TEXT}
    assert not edge.dropped


TOO_LARGE = 60_000


def test_garbage_again_and_again_ends_the_stream_and_no_other():
    cloud = desk(VerificationServerConfig(max_strikes=5))
    bad, good = Edge(cloud, "s1", "bad"), Edge(cloud, "s2", "good")
    good.say(good.opening(PATH_ASKED))
    for _ in range(5):
        bad.raw(b"\xc1\xc1")
    run(cloud, bad, good)
    assert bad.dropped == "too many malformed frames"
    assert good.done[1] == PATH_TEXT
    assert cloud.metrics.num_streams == 1


def test_frames_before_a_greeting_end_the_stream():
    cloud = desk()
    edge, silent = Edge(cloud, greets=False), Edge(cloud, "s2", greets=False)
    edge.say(edge.opening(PATH_ASKED))
    deliver(cloud, edge)
    assert edge.dropped
    cloud._clock.now_s += 6.0  # type: ignore[attr-defined]
    cloud.step()
    deliver(cloud, silent)
    assert silent.dropped == "it did not greet in time"


def test_streams_are_bounded_in_all_and_for_each_edge_and_the_oldest_or_silent_go_first():
    cloud = desk(VerificationServerConfig(max_streams=4, max_streams_each=2))
    mine = [Edge(cloud, f"m{i}", "greedy") for i in range(3)]
    deliver(cloud, *mine)
    assert [bool(edge.dropped) for edge in mine] == [True, False, False]
    silent = Edge(cloud, "s1", "silent", greets=False)
    others = [Edge(cloud, f"o{i}", f"edge{i}") for i in range(3)]
    deliver(cloud, silent, *mine, *others)
    assert silent.dropped
    assert [bool(edge.dropped) for edge in others] == [False, False, True]
    others[0].say(others[0].opening(PATH_ASKED))
    run(cloud, others[0])
    assert others[0].done[1] == PATH_TEXT


def test_what_would_be_late_is_refused_before_any_work():
    cloud = desk(turns=TurnsConfig(max_waiting=4))
    edge = Edge(cloud)
    edge.say(edge.opening(requests(1)[0], 0, deadline_ms=0))
    deliver(cloud, edge)
    (refused,) = edge.refused()
    assert refused.reason == RefusalReason.BUSY
    assert refused.retry_ms > 0
    for handle, request in enumerate(requests(5), 1):
        edge.say(edge.opening(request, handle, deadline_ms=LATE))
    deliver(cloud, edge)
    assert [(frame.handle, frame.reason) for frame in edge.refused()[1:]] == [(5, RefusalReason.BUSY)]
    assert cloud.metrics.num_passes == 0
    run(cloud, edge)
    assert sorted(edge.done) == [1, 2, 3, 4]


def test_draining_desk_finishes_what_it_has_and_takes_nothing_new():
    cloud = desk(VerificationServerConfig(drain_retry_ms=70))
    edge = Edge(cloud)
    edge.say(edge.opening(PATH_ASKED, 1))
    deliver(cloud, edge)
    cloud.drain()
    assert not cloud.is_idle
    edge.say(edge.opening(VIEW_ASKED, 2), edge.opening(PATH_ASKED, 3))
    edge.say(edge.window(2, 0, PATH_TEXT, 4))  # on its way already: no offence
    run(cloud, edge)
    assert edge.done == {1: PATH_TEXT, 3: PATH_TEXT}
    assert [(frame.handle, frame.reason, frame.retry_ms) for frame in edge.refused()] == [
        (2, RefusalReason.DRAINING, 70)
    ]
    assert cloud.is_idle
    assert cloud.metrics.is_draining


def test_stream_that_takes_nothing_hears_all_in_few_frames_later_or_is_dropped():
    time = Time()
    cloud = desk(VerificationServerConfig(resend_ms=1.0, slow_reader_ms=100.0), time=time)
    edge = Edge(cloud)
    edge.say(edge.opening(PATH_ASKED))
    deliver(cloud, edge)
    for _ in range(40):
        cloud.step()
        for stream, sealed in cloud.outgoing():
            cloud.unsent(stream, sealed)
        time.now_s += 0.001
    num_before = len(edge.heard)
    deliver(cloud, edge)
    assert edge.done[1] == PATH_TEXT
    assert len(edge.heard) - num_before <= 2
    edge.say(edge.opening(VIEW_ASKED, 2))
    for _ in range(3):
        for stream, sealed in cloud.outgoing():
            cloud.unsent(stream, sealed)
        time.now_s += 0.2
    deliver(cloud, edge)
    assert edge.dropped == "it accepts no frames"


def test_long_prompt_is_read_in_turns_while_others_write_on():
    cloud = desk(
        VerificationServerConfig(prompt_ms=1.0),
        decoding=DecodingConfig(batch_bytes=2**22, cache_bytes=2**20, block_tokens=8),
        time=Time(per_look_s=1e-4),
    )
    edge = Edge(cloud)
    long = replace(PATH_ASKED, prompt=(*PATH_ASKED.prompt, PlainText("rose and fell" * 40)))
    edge.say(edge.opening(VIEW_ASKED, 1), edge.opening(long, 2))
    run_to_writing(cloud, edge)
    network = cloud.scheduler.engine.sessions.network
    assert isinstance(network, TinyNetwork)
    most, num_waiting = 0, 0
    while cloud.metrics.num_rows == 1 and cloud.metrics.num_waiting == 1:
        before = network.num_positions
        cloud.step()
        most = max(most, network.num_positions - before)
        num_waiting += 1
    assert num_waiting > 4
    assert most < 200
    run(cloud, edge)
    assert tuple(edge.done[2]) == truth(long).tokens
    assert tuple(edge.done[1]) == truth(VIEW_ASKED).tokens


def run_to_writing(cloud: VerificationServer, edge: Edge) -> None:
    deliver(cloud, edge)
    cloud.step()
    assert (cloud.metrics.num_rows, cloud.metrics.num_waiting) == (1, 1)


def test_work_under_suspicion_is_read_after_work_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi.scheduling.turns.fair_share.SUSPECTED_DELAY_MS", 1e6)
    cloud = desk(VerificationServerConfig())
    doubted, plain = Edge(cloud, "s1", "edge1"), Edge(cloud, "s2", "edge2")
    asked = requests(2)
    doubted.say(replace(doubted.opening(asked[0]), suspicion=1000))
    plain.say(plain.opening(asked[1]))
    deliver(cloud, doubted, plain)
    assert cloud.scheduler.turns.suspicions == {"edge1": 1.0}  # type: ignore[attr-defined]
    cloud.step()
    assert [case.tenant for case in cloud.scheduler.writing.values()] == ["edge2"]
    run(cloud, doubted, plain)
    assert tuple(doubted.done[1]) == truth(asked[0]).tokens
    assert tuple(plain.done[1]) == truth(asked[1]).tokens
    assert cloud.scheduler.turns.suspicions == {}  # type: ignore[attr-defined]
