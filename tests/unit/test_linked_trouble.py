"""The author whose target is elsewhere in trouble: late, gone, wrong, busy. Every question still has its answer."""

import math

import pytest

from htfi.decoding.config import DecodingConfig, EdgeConfig
from htfi.decoding.link.client.answers import ALONE
from htfi.decoding.link.frames import (
    CancelFrame,
    DraftMode,
    Frame,
    NeedFrame,
    OpenFrame,
    RefusalReason,
    RefusedFrame,
    encode,
    unpack,
    unseal,
)
from htfi.decoding.link.ports import StreamArrival, StreamEvent
from htfi.decoding.local_generator import LocalGenerator
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from linked_world import TOKENIZER, FakeCloud, Scene, draft_author, local, question


def truth(scene: Scene, request: GenerationRequest) -> tuple[int, ...]:
    (answer,) = scene.target.write([request])
    assert isinstance(answer, Completion)
    return answer.tokens


def one(scene: Scene, request: GenerationRequest) -> Completion:
    (answer,) = scene.author.write([request])
    assert isinstance(answer, Completion), answer
    return answer


def check_provisional(scene: Scene, request: GenerationRequest, answer: Completion) -> None:
    assert answer.is_provisional
    assert answer.place.startswith(ALONE)
    assert answer.tokens[: answer.num_verified] == truth(scene, request)[: answer.num_verified]
    alone = scene.draft.continue_from(answer.prompt, request, answer.tokens[: answer.num_verified])
    assert isinstance(alone, Completion)
    assert (answer.tokens, answer.fields) == (alone.tokens, alone.fields)


@pytest.mark.parametrize("lead", list(DraftMode))
def test_at_its_deadline_a_request_is_finished_alone_and_amended_later(lead: DraftMode):
    scene = Scene(lead, rtt_ms=40.0, draft=draft_author(0.4))
    scene.clouds[0].pass_ms = 30.0
    request = question(1, deadline_ms=200.0)
    began_s = scene.world.now_s
    answer = one(scene, request)
    assert 0.15 <= scene.world.now_s - began_s <= 0.2
    check_provisional(scene, request, answer)
    assert 0 < answer.num_verified < 24
    assert scene.author.take_late_completions() == []
    late = scene.late(3_000.0)
    assert list(late) == ["q1"]
    amended = late["q1"]
    assert isinstance(amended, Completion)
    assert amended.tokens == truth(scene, request)
    assert not amended.is_provisional
    assert scene.author.take_late_completions() == []


def test_what_was_finished_alone_goes_on_with_all_that_is_known_as_guesses():
    scene = Scene(DraftMode.PIPELINED, rtt_ms=40.0)
    scene.clouds[0].pass_ms = 100.0
    answer = one(scene, question(1, deadline_ms=200.0))
    opened = [frame for frame in scene.transport.frames if isinstance(frame, OpenFrame)]
    assert [frame.draft_mode for frame in opened] == [DraftMode.PIPELINED, DraftMode.CLOUD]
    assert opened[1].epoch > opened[0].epoch
    assert opened[1].handle == opened[0].handle
    assert unpack(opened[1].guesses) == list(answer.tokens)
    assert opened[1].deadline_ms > 10_000


def test_a_request_without_an_id_is_not_awaited_after_its_deadline():
    scene = Scene(rtt_ms=100.0)
    request = GenerationRequest(question(1).prompt, question(1).form, 1, 1.0, 50.0)
    assert one(scene, request).is_provisional
    assert scene.late(500.0) == {}
    assert not scene.clouds[0].asks


def test_without_a_cloud_it_is_written_alone_at_once_and_amended_when_one_comes():
    scene = Scene(num_clouds=0)
    request = question(1)
    began_s = scene.world.now_s
    answer = one(scene, request)
    assert scene.world.now_s - began_s < 0.01
    assert (answer.num_verified, answer.place) == (0, f"{ALONE}, no cloud is reachable")
    check_provisional(scene, request, answer)
    assert scene.late(500.0) == {}
    scene.transport.connect(FakeCloud(scene.world, "cloud9", scene.target))
    scene.usable.append("cloud9")
    late = scene.late(1_000.0)
    assert isinstance(late["q1"], Completion)
    assert late["q1"].tokens == truth(scene, request)


def test_a_plan_may_say_alone_and_the_target_amends_all_the_same():
    scene = Scene()
    scene.plan.is_alone = True
    request = question(1)
    answer = one(scene, request)
    assert answer.place == f"{ALONE}, the plan says so"
    check_provisional(scene, request, answer)
    assert scene.late(1_000.0)["q1"].tokens == truth(scene, request)  # type: ignore[attr-defined]


def test_a_stream_that_ends_moves_its_requests_with_all_that_is_known():
    scene = Scene(DraftMode.PLAIN, num_clouds=2, config=EdgeConfig(hedges=False))
    scene.world.after(90.0, lambda: scene.transport.cut("cloud1"))
    request = question(1)
    assert one(scene, request).tokens == truth(scene, request)
    opened = [frame for frame in scene.transport.frames if isinstance(frame, OpenFrame)]
    assert len(opened) == 2
    known = unpack(opened[1].guesses)
    assert 3 < len(known) < 24
    assert tuple(known) == truth(scene, request)[: len(known)]
    assert scene.clouds[1].num_passes <= 24 - len(known) + 3  # what is known is verified in one pass
    assert [line[:2] for line in scene.reports] == [("cloud1", "reroute")]


def test_an_only_cloud_that_comes_back_soon_is_waited_for():
    scene = Scene(DraftMode.PIPELINED)
    scene.world.after(60.0, lambda: scene.transport.cut("cloud1"))
    scene.world.after(120.0, lambda: scene.transport.connect(scene.clouds[0]))
    scene.clouds[0].pass_ms = 30.0
    request = question(1)
    answer = one(scene, request)
    assert not answer.is_provisional
    assert answer.tokens == truth(scene, request)


def test_an_only_cloud_that_stays_away_is_not_waited_for_long():
    scene = Scene(DraftMode.PIPELINED, config=EdgeConfig(reconnect_wait_ms=100.0))
    scene.clouds[0].pass_ms = 30.0
    began_s = scene.world.now_s
    scene.world.after(60.0, lambda: scene.transport.cut("cloud1"))
    request = question(1)
    answer = one(scene, request)
    check_provisional(scene, request, answer)
    assert scene.world.now_s - began_s == pytest.approx(0.16, abs=0.03)


def test_a_cloud_that_health_gives_up_is_left_for_another():
    scene = Scene(DraftMode.PIPELINED, num_clouds=2, config=EdgeConfig(hedges=False))
    scene.clouds[0].is_silent = True
    scene.world.after(100.0, lambda: scene.usable.remove("cloud1"))
    request = question(1)
    began_s = scene.world.now_s
    answer = one(scene, request)
    assert answer.tokens == truth(scene, request)
    assert answer.place.startswith("cloud2")
    assert scene.world.now_s - began_s < 0.4


def test_an_only_cloud_that_health_gives_up_leaves_the_edge_alone_at_once():
    scene = Scene(DraftMode.PIPELINED)
    scene.clouds[0].is_silent = True
    scene.world.after(100.0, scene.usable.clear)
    began_s = scene.world.now_s
    answer = one(scene, question(1))
    assert answer.place == f"{ALONE}, its cloud is unusable"
    assert scene.world.now_s - began_s < 0.2


def test_a_cloud_with_other_weights_than_it_says_is_dropped_and_not_used_in_this_life():
    scene = Scene(DraftMode.PLAIN, num_clouds=2, config=EdgeConfig(hedge_ms=50.0))
    wrong = FakeCloud(scene.world, "cloud2", local(5))
    wrong.welcome_as = {"target": scene.target.sessions.network.digest}
    scene.transport.cut("cloud2")
    scene.transport.connect(wrong)
    scene.author.wait_ready(1.0)
    request = question(1)
    answer = one(scene, request)
    assert answer.tokens == truth(scene, request)
    told = [line for line in scene.reports if line[:2] == ("cloud2", "refused")]
    assert len(told) == 1
    assert "contradicts" in told[0][2]
    scene.transport.connect(wrong)
    scene.late(100.0)
    assert scene.author.wait_ready(0.0) == ["cloud1"]
    wrong.restart()  # another life, perhaps with what it says
    scene.transport.cut("cloud2")
    scene.transport.connect(wrong)
    scene.late(100.0)
    assert scene.author.wait_ready(0.0) == ["cloud1", "cloud2"]


@pytest.mark.parametrize(
    ("welcome_as", "words"),
    [
        ({"version": 2}, "protocol 2"),
        ({"target": "f" * 64}, "its target is"),
        ({"tokenizer": "f" * 64}, "its tokenizer is"),
        ({"node": "cloud7"}, "its name 'cloud7'"),
    ],
)
def test_a_cloud_that_is_not_what_is_expected_is_named_once_and_not_used(
    welcome_as: dict[str, object], words: str
):
    scene = Scene(num_clouds=0)
    cloud = FakeCloud(scene.world, "cloud1", scene.target)
    cloud.welcome_as = welcome_as
    scene.usable.append("cloud1")
    for _ in range(3):
        scene.transport.connect(cloud)
        assert scene.author.wait_ready(0.2) == []
        assert one(scene, question(1)).is_provisional
        scene.transport.cut("cloud1")
    assert len(scene.reports) == 1
    assert scene.reports[0][:2] == ("cloud1", "refused")
    assert words in scene.reports[0][2]
    cloud.welcome_as = {}
    scene.transport.connect(cloud)
    assert scene.author.wait_ready(0.2) == ["cloud1"]


def test_data_that_must_not_leave_goes_only_where_it_may():
    scene = Scene(DraftMode.PIPELINED, num_clouds=2)
    scene.clouds[1].residency = ("eu", "uk")
    scene.transport.cut("cloud2")
    scene.transport.connect(scene.clouds[1])
    scene.author.take_late_completions()
    scene.pass_time(100.0)
    scene.author.take_late_completions()
    request = question(1, residency=frozenset({"eu"}))
    answer = one(scene, request)
    assert answer.place.startswith("cloud2")
    assert not scene.clouds[0].num_passes
    nowhere = one(scene, question(2, residency=frozenset({"eu", "us"})))
    assert nowhere.is_provisional
    assert not scene.clouds[0].num_passes


def test_a_busy_cloud_is_left_for_another_and_an_only_one_is_asked_again():
    busy = RefusedFrame(0, 0, RefusalReason.BUSY, 80, "too many")
    scene = Scene(DraftMode.PIPELINED, num_clouds=2)
    scene.clouds[0].refuses = busy
    request = question(1)
    answer = one(scene, request)
    assert answer.place.startswith("cloud2")
    only = Scene(DraftMode.PIPELINED)
    only.clouds[0].refuses = busy
    only.world.after(150.0, lambda: setattr(only.clouds[0], "refuses", None))
    answer = one(only, request)
    assert answer.tokens == truth(only, request)
    late = Scene(DraftMode.PIPELINED)
    late.clouds[0].refuses = RefusedFrame(0, 0, RefusalReason.BUSY, 5_000, "too many")
    began_s = late.world.now_s
    answer = one(late, question(1, deadline_ms=1_000.0))
    assert answer.is_provisional
    assert late.world.now_s - began_s < 0.1  # it is known early that it would be late


def test_a_draining_cloud_is_asked_nothing_new_until_it_comes_back():
    scene = Scene(DraftMode.PIPELINED, num_clouds=2)
    scene.clouds[0].refuses = RefusedFrame(0, 0, RefusalReason.DRAINING, 500, "about to stop")
    for seed in range(3):
        assert one(scene, question(seed)).place.startswith("cloud2")
    opened = [frame for frame in scene.transport.frames if isinstance(frame, OpenFrame)]
    assert len(opened) == 4  # one refused
    scene.clouds[0].refuses = None
    scene.transport.cut("cloud1")
    scene.transport.connect(scene.clouds[0])
    scene.author.take_late_completions()
    scene.pass_time(100.0)
    assert one(scene, question(5)).place.startswith("cloud2")  # the plan takes the first that is named
    scene.transport.cut("cloud2")
    assert one(scene, question(6)).place.startswith("cloud1")


def test_what_the_target_cannot_answer_is_refused_in_its_words():
    scene = Scene()
    scene.clouds[0].refuses = RefusedFrame(
        0, 0, RefusalReason.UNANSWERABLE, -1, "700 tokens with the answer; the model reads at most 512"
    )
    (answer,) = scene.author.write([question(1)])
    assert answer == RequestRefused("700 tokens with the answer; the model reads at most 512")
    assert scene.late(200.0) == {}


def test_a_cloud_that_refuses_for_ever_costs_no_deadline():
    scene = Scene()
    scene.clouds[0].refuses = RefusedFrame(0, 0, RefusalReason.MALFORMED, -1, "what is this")
    began_s = scene.world.now_s
    answer = one(scene, question(1, deadline_ms=400.0))
    assert answer.is_provisional
    assert scene.world.now_s - began_s <= 0.4


def test_what_is_pursued_comes_late_and_is_asked_once():
    scene = Scene(DraftMode.PIPELINED)
    requests = [question(seed) for seed in range(3)]
    scene.author.request_completions(requests)
    scene.author.request_completions(requests[:2])
    late = scene.late(2_000.0)
    assert {name: answer.tokens for name, answer in late.items()} == {  # type: ignore[attr-defined]
        request.id: truth(scene, request) for request in requests
    }
    opened = [frame for frame in scene.transport.frames if isinstance(frame, OpenFrame)]
    assert len(opened) == 3
    assert {frame.draft_mode for frame in opened} == {DraftMode.CLOUD}


def test_a_question_that_is_awaited_late_may_be_asked_in_earnest():
    scene = Scene(DraftMode.PIPELINED)
    request = question(1)
    scene.author.request_completions([request])
    assert one(scene, request).tokens == truth(scene, request)
    assert scene.late(500.0) == {}
    assert len([frame for frame in scene.transport.frames if isinstance(frame, OpenFrame)]) == 1


def test_no_more_than_so_many_answers_are_awaited_and_the_oldest_is_given_up():
    scene = Scene(num_clouds=0, config=EdgeConfig(max_late=4))
    for seed in range(6):
        assert one(scene, question(seed)).is_provisional
    told = dict(scene.author.take_late_completions())
    assert list(told) == ["q0", "q1"]
    assert all(isinstance(answer, RequestRefused) for answer in told.values())


def test_clouds_are_left_by_what_is_given_up():
    scene = Scene(config=EdgeConfig(max_late=2))
    scene.clouds[0].pass_ms = 500.0
    for seed in range(4):
        scene.author.request_completions([question(seed)])
        scene.pass_time(50.0)
    assert len(scene.clouds[0].asks) == 2
    assert len(dict(scene.author.take_late_completions())) == 2


def test_what_a_cloud_said_to_lack_is_sent_though_that_was_lost():
    scene = Scene(config=EdgeConfig(quiet_ms=200.0))
    request = question(1)
    one(scene, request)
    scene.clouds[0].parts.clear()
    deliver = scene.transport.deliver

    def deaf(stream: str, frame: Frame) -> None:
        if not isinstance(frame, NeedFrame):
            deliver(stream, frame)

    scene.transport.deliver = deaf  # type: ignore[method-assign]
    assert one(scene, request).tokens == truth(scene, request)


def test_what_does_not_come_in_time_is_refused_late():
    scene = Scene(num_clouds=0, config=EdgeConfig(late_answer_timeout_ms=300.0))
    one(scene, question(1))
    assert scene.late(250.0) == {}
    late = scene.late(200.0)
    assert late == {"q1": RequestRefused("no cloud answered in time")}


def test_a_cloud_that_never_says_who_it_is_is_dialled_anew():
    scene = Scene(num_clouds=0, config=EdgeConfig(hello_timeout_ms=100.0))
    mute = FakeCloud(scene.world, "cloud1", scene.target)
    mute.is_silent = True
    stream = scene.transport.connect(mute)
    scene.usable.append("cloud1")
    began_s = scene.world.now_s
    assert one(scene, question(1)).is_provisional
    assert scene.world.now_s - began_s == pytest.approx(0.1, abs=0.03)  # a greeting is waited for
    scene.late(600.0)
    assert stream not in scene.transport.streams


def test_a_draft_with_little_memory_finishes_all_the_same():
    draft = draft_author()
    room = draft.sessions.network.shape.kv_bytes_per_token * 32 * 2  # of two answers
    tight = LocalGenerator(draft.sessions.network, TOKENIZER, "draft", DecodingConfig(batch_bytes=room))
    scene = Scene(DraftMode.PIPELINED, draft=tight)
    scene.clouds[0].pass_ms = 1_000.0
    requests = [question(seed, deadline_ms=300.0 - 50.0 * seed) for seed in range(5)]
    answers = scene.author.write(requests)
    for request, answer in zip(requests, answers, strict=True):
        assert isinstance(answer, Completion), answer
        check_provisional(scene, request, answer)


def test_a_newer_stream_to_a_cloud_takes_the_place_of_one_that_ended_unheard():
    scene = Scene(DraftMode.PIPELINED)
    scene.clouds[0].pass_ms = 30.0
    (old,) = scene.transport.streams

    def dark() -> None:
        del scene.transport.streams[old]
        scene.clouds[0].gone(old)

    scene.world.after(60.0, dark)
    scene.world.after(100.0, lambda: scene.transport.connect(scene.clouds[0]))
    request = question(1)
    began_s = scene.world.now_s
    assert one(scene, request).tokens == truth(scene, request)
    assert scene.world.now_s - began_s < 0.6


@pytest.mark.parametrize("deadline_ms", [0.0, -5.0, math.nan])
def test_no_time_is_answered_alone_at_once(deadline_ms: float):
    scene = Scene(DraftMode.PIPELINED)
    began_s = scene.world.now_s
    check_provisional(scene, question(1), one(scene, question(1, deadline_ms=deadline_ms)))
    assert scene.world.now_s - began_s < 0.001
    assert "q1" in scene.late(1_000.0)


def test_all_the_time_there_is_is_no_error():
    scene = Scene(DraftMode.PIPELINED)
    request = question(1, deadline_ms=math.inf)
    assert one(scene, request).tokens == truth(scene, request)


def test_frames_that_no_cloud_sends_end_its_stream():
    scene = Scene(DraftMode.PIPELINED, num_clouds=2, config=EdgeConfig(hedges=False))
    (stream, _) = scene.transport.streams
    for body in (b"garbage", b"\x95\x09", unseal(encode(CancelFrame(1, 1)))[1]):
        scene.world.after(
            50.0,
            lambda body=body: scene.transport.arrived.append(
                StreamArrival(stream, "cloud1", StreamEvent.FRAME, body)
            ),
        )
    scene.clouds[0].pass_ms = 30.0
    request = question(1)
    answer = one(scene, request)
    assert answer.tokens == truth(scene, request)
    assert answer.place.startswith("cloud2")
    assert ("cloud1", "refused") in [line[:2] for line in scene.reports]


def test_closing_leaves_every_cloud():
    scene = Scene(rtt_ms=20.0)
    scene.author.request_completions([question(seed) for seed in range(3)])
    scene.pass_time(40.0)
    assert scene.clouds[0].asks
    scene.author.close()
    scene.pass_time(40.0)
    assert not scene.clouds[0].asks
