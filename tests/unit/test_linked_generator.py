"""The author whose target is elsewhere, mode by mode: what it writes, what it sends, what it tells."""

import math
from typing import TypeVar

import pytest
from msgspec.structs import replace

from htfi.decoding.config import EdgeConfig
from htfi.decoding.draft_length.planner import FixedLengthPlanner
from htfi.decoding.link.frames import (
    AcceptedFrame,
    CancelFrame,
    DraftMode,
    DraftWindowFrame,
    OpenFrame,
    PartFrame,
    prefix_hash,
    unpack,
)
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.strategies.recorded import RecordedStrategy
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import Completion, ControlToken, GenerationRequest, PlainText, RequestRefused
from htfi.domain.generation import FixedField as FixedPart
from htfi.narrative.ports import LateTextGenerator
from linked_world import TOKENIZER, VIEW, VOCAB, Scene, draft_author, local, question
from tiny_network import TinyNetwork

F = TypeVar("F")


def expected(scene: Scene, requests: list[GenerationRequest]) -> list[tuple[int, ...]]:
    found = scene.target.write(requests)
    assert all(isinstance(answer, Completion) for answer in found), found
    return [answer.tokens for answer in found if isinstance(answer, Completion)]


def written(scene: Scene, requests: list[GenerationRequest]) -> list[Completion]:
    answers = scene.author.write(requests)
    assert not [answer for answer in answers if isinstance(answer, RequestRefused)], answers
    return [answer for answer in answers if isinstance(answer, Completion)]


def sent(scene: Scene, kind: type[F]) -> list[F]:
    return [frame for frame in scene.transport.frames if isinstance(frame, kind)]


def windows(scene: Scene) -> list[DraftWindowFrame]:
    return sent(scene, DraftWindowFrame)


@pytest.mark.parametrize("lead", list(DraftMode))
@pytest.mark.parametrize("rtt_ms", [0.0, 20.0, 200.0])
def test_an_answer_is_the_targets_in_every_mode(lead: DraftMode, rtt_ms: float):
    scene = Scene(lead, rtt_ms=rtt_ms)
    requests = [question(seed) for seed in range(4)] + [question(9, VIEW)]
    answers = written(scene, requests)
    assert [answer.tokens for answer in answers] == expected(scene, requests)
    assert all(answer.num_verified == -1 for answer in answers)
    assert answers[0].fields == scene.target.write(requests[:1])[0].fields  # type: ignore[union-attr]
    assert answers[0].strategy == ("flight" if lead is DraftMode.PIPELINED else lead.name.lower())
    assert answers[0].place.startswith("cloud1, ")


def test_it_is_an_author_that_can_be_late():
    scene = Scene()
    assert isinstance(scene.author, LateTextGenerator)
    assert scene.author.version == "tiny@1"
    assert scene.author.dialect == scene.target.dialect


@pytest.mark.parametrize("lead", list(DraftMode))
@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_recorded_rounds_can_be_verified_again(lead: DraftMode, share: float):
    scene = Scene(lead, draft=draft_author(share))
    for request in (question(1), question(2, VIEW)):
        (answer,) = written(scene, [request])
        again = LocalGenerator(
            TinyNetwork(VOCAB),
            TOKENIZER,
            "tiny",
            scene.target.sessions.config,
            strategy=RecordedStrategy(answer.rounds),
            length_planner=FixedLengthPlanner(64),
        ).regenerate(answer.prompt, request)
        assert isinstance(again, Completion)
        assert again.tokens == answer.tokens
        assert again.rounds == answer.rounds


def test_in_flight_many_windows_go_before_the_first_outcome_and_in_lock_step_one():
    for lead, num in ((DraftMode.PIPELINED, 4), (DraftMode.LOCKSTEP, 1)):
        scene = Scene(lead, draft=draft_author(0.0), rtt_ms=100.0)
        scene.clouds[0].prompt_ms = 1_000.0
        scene.author.write([question(1, deadline_ms=500.0)])
        assert len(windows(scene)) == num
        assert [window.at for window in windows(scene)] == [6 * at for at in range(num)]


def test_in_flight_a_sure_draft_costs_one_round_trip_and_in_lock_step_one_for_each_window():
    took_ms: dict[DraftMode, float] = {}
    for lead in DraftMode:
        scene = Scene(lead, draft=draft_author(0.0), rtt_ms=100.0)
        began_s = scene.world.now_s
        written(scene, [question(1)])
        took_ms[lead] = 1e3 * (scene.world.now_s - began_s)
    assert took_ms[DraftMode.PIPELINED] == pytest.approx(100 + 5 + 4 * 5, abs=1.0)  # prompt, four windows
    assert took_ms[DraftMode.LOCKSTEP] == pytest.approx(5 + 4 * 105, abs=101.0)
    assert took_ms[DraftMode.PLAIN] == pytest.approx(100 + 24 * 5, abs=1.0)
    assert took_ms[DraftMode.PIPELINED] < took_ms[DraftMode.PLAIN] < took_ms[DraftMode.LOCKSTEP]


def test_after_a_mismatch_the_draft_goes_on_from_the_targets_own_token():
    scene = Scene(DraftMode.PIPELINED, draft=draft_author(0.4), rtt_ms=2.0)
    request = question(3)
    (answer,) = written(scene, [request])
    (truth,) = expected(scene, [request])
    num_corrected = 0
    for window in windows(scene):
        alone = scene.draft.continue_from(answer.prompt, request, truth[: window.at])
        assert isinstance(alone, Completion)
        if window.at % 6 and window.prefix == prefix_hash(
            truth[: window.at]
        ):  # it was known to be the target's
            ids = unpack(window.ids)
            assert alone.tokens[window.at : window.at + len(ids)] == tuple(ids)
            num_corrected += 1
    assert num_corrected > 2, "the draft was never wrong: take a worse one"


def test_frames_add_few_bytes_to_the_ids_of_a_round():
    for lead in (DraftMode.LOCKSTEP, DraftMode.PIPELINED):
        scene = Scene(lead, rtt_ms=5.0)
        written(scene, [question(seed) for seed in range(6)])
        traffic = scene.author.traffic
        assert traffic.num_rounds > 6
        assert 0 < traffic.overhead_bytes_per_round <= 64
        assert traffic.id_bytes < traffic.window_bytes < traffic.sent_bytes


def test_what_the_draft_came_to_is_told():
    scene = Scene(DraftMode.PIPELINED, draft=draft_author(0.0), rtt_ms=0.0)
    answers = written(scene, [question(seed) for seed in range(3)])
    assert scene.author.speculation_stats.acceptance == 1.0
    assert scene.author.speculation_stats.num_answers == 3
    assert scene.author.speculation_stats.num_tokens == sum(len(answer.tokens) for answer in answers)
    assert len(scene.plan.learnt) == 3
    for learnt in scene.plan.learnt:
        assert learnt.placed.cloud == "cloud1"
        assert learnt.num_tokens == 24
        assert 0 < learnt.first_ms <= learnt.total_ms
        assert learnt.num_accepted == learnt.num_drafted


def test_a_request_that_opted_out_is_never_guessed_for():
    scene = Scene(DraftMode.PIPELINED)
    request = question(1, max_draft=0)
    (answer,) = written(scene, [request])
    assert (answer.tokens,) == tuple(expected(scene, [request]))
    assert not sent(scene, DraftWindowFrame)
    assert answer.strategy == "plain"


def test_a_window_is_no_longer_than_a_request_allows():
    scene = Scene(DraftMode.PIPELINED)
    written(scene, [question(1, max_draft=2)])
    assert windows(scene)
    assert max(len(unpack(window.ids)) for window in windows(scene)) <= 2


@pytest.mark.parametrize("lead", [DraftMode.PIPELINED, DraftMode.LOCKSTEP])
def test_a_draft_without_room_leaves_the_cloud_to_itself(lead: DraftMode):
    scene = Scene(lead)
    held = [
        scene.draft.sessions.open([1, 2, 3], 512) for _ in range(60) if scene.draft.sessions.has_space(512)
    ]
    assert held
    requests = [question(1), question(2)]
    assert [answer.tokens for answer in written(scene, requests)] == expected(scene, requests)
    assert not sent(scene, DraftWindowFrame)
    assert {(frame.epoch, frame.draft_mode) for frame in sent(scene, OpenFrame)} == {
        (1, lead),
        (2, DraftMode.CLOUD),
    }


def test_a_form_that_leaves_nothing_open_needs_no_cloud():
    scene = Scene(num_clouds=0)
    request = GenerationRequest(
        (PlainText("abc"),), (FixedPart((ControlToken("up"), ControlToken("end"))),), id="sure"
    )
    (answer,) = written(scene, [request])
    (truth,) = scene.target.write([request])
    assert isinstance(truth, Completion)
    assert answer.tokens == truth.tokens
    assert not answer.is_provisional


def test_a_request_that_cannot_be_asked_is_refused_and_the_others_are_answered():
    scene = Scene()
    answers = scene.author.write([replace(question(1), temperature=math.nan), question(2)])
    assert isinstance(answers[0], RequestRefused)
    assert isinstance(answers[1], Completion)


def test_parts_travel_once_and_again_only_in_another_life():
    scene = Scene()
    written(scene, [question(1)])
    assert len(sent(scene, PartFrame)) == 3  # shared, rest, form
    written(scene, [question(2)])
    assert len(sent(scene, PartFrame)) == 4  # the rest alone
    scene.transport.cut("cloud1")
    scene.transport.connect(scene.clouds[0])
    written(scene, [question(1)])
    assert len(sent(scene, PartFrame)) == 4
    scene.transport.cut("cloud1")
    scene.clouds[0].restart()
    scene.transport.connect(scene.clouds[0])
    written(scene, [question(1)])
    assert len(sent(scene, PartFrame)) == 7


def test_a_part_that_was_interrupted_is_resumed_where_it_stopped():
    scene = Scene()
    long = replace(question(1), prompt=(PlainText("a" * 450),), shared=0)
    scene.author.write([long])
    name = sent(scene, PartFrame)[0].name
    del scene.clouds[0].parts[name][300:]
    (answer,) = written(scene, [long])
    resumed = sent(scene, PartFrame)[-1]
    assert (resumed.name, resumed.offset) == (name, 300)
    assert (answer.tokens,) == tuple(expected(scene, [long]))


def test_what_a_stream_does_not_take_now_is_sent_later():
    scene = Scene(DraftMode.PIPELINED)
    scene.transport.refuses_every = 2
    requests = [question(seed) for seed in range(4)]
    assert [answer.tokens for answer in written(scene, requests)] == expected(scene, requests)


def test_frames_that_come_twice_change_nothing():
    scene = Scene(DraftMode.PIPELINED)
    scene.transport.twice = True
    requests = [question(seed) for seed in range(4)]
    assert [answer.tokens for answer in written(scene, requests)] == expected(scene, requests)


def test_nothing_is_held_for_what_is_over():
    scene = Scene(DraftMode.PIPELINED, num_clouds=2, config=EdgeConfig(hedge_ms=30.0))
    written(scene, [question(seed) for seed in range(6)])
    scene.author.write([question(seed, deadline_ms=20.0) for seed in range(6, 9)])
    assert len(scene.late()) == 3
    author = scene.author
    assert not author._attempts._open
    assert not author._writing
    assert author._drafter.generator.sessions.arena.num_rows == 0
    assert not author._drafter._chain._rows._rows
    for cloud in scene.clouds:
        assert not cloud.asks


def test_a_hedge_is_left_once_the_answer_is_whole():
    scene = Scene(DraftMode.PIPELINED, num_clouds=2, config=EdgeConfig(hedge_ms=30.0), rtt_ms=20.0)
    scene.clouds[0].pass_ms = 200.0
    request = question(1)
    (answer,) = written(scene, [request])
    assert (answer.tokens,) == tuple(expected(scene, [request]))
    assert answer.place.startswith("cloud2")
    assert [line[:2] for line in scene.reports] == [("cloud2", "reroute")]
    learnt = {finished.placed.cloud: finished for finished in scene.plan.learnt}
    assert {cloud: finished.is_whole for cloud, finished in learnt.items()} == {
        "cloud1": False,
        "cloud2": True,
    }
    assert learnt["cloud1"].total_ms == pytest.approx(learnt["cloud2"].total_ms + 30.0, abs=0.1)
    assert len(sent(scene, CancelFrame)) == 1


def test_a_hedge_waits_for_what_the_plan_calls_late():
    scene = Scene(DraftMode.PIPELINED, num_clouds=2)
    scene.clouds[0].pass_ms = 200.0
    scene.plan.placed = scene.plan.placed._replace(late_ms=300.0)
    written(scene, [question(1)])
    assert [line[0] for line in scene.reports] == ["cloud2"]
    again = Scene(DraftMode.PIPELINED, num_clouds=2, config=EdgeConfig(hedges=False))
    again.clouds[0].pass_ms = 200.0
    again.plan.placed = again.plan.placed._replace(late_ms=300.0)
    written(again, [question(1)])
    assert not again.reports


def test_a_request_without_an_id_cannot_be_pursued():
    with pytest.raises(InvalidInput, match="needs an id"):
        Scene().author.request_completions([GenerationRequest((PlainText("abc"),), VIEW)])


def test_settings_out_of_range_are_refused_by_name():
    for name, value in (
        ("margin_ms", -1.0),
        ("late_answer_timeout_ms", 0.0),
        ("max_late", -1),
        ("hedge_ms", math.nan),
    ):
        with pytest.raises(InvalidInput, match=f"edge.{name}"):
            EdgeConfig(**{name: value})  # type: ignore[arg-type]


def test_a_settled_frame_ahead_of_what_is_known_makes_it_ask_anew():
    scene = Scene(DraftMode.PLAIN)
    cloud = scene.clouds[0]
    deliver, lost = scene.transport.deliver, []

    def lossy(stream: str, frame: object) -> None:
        if isinstance(frame, AcceptedFrame) and frame.at == 3 and not lost:
            lost.append(frame)
        else:
            deliver(stream, frame)  # type: ignore[arg-type]

    scene.transport.deliver = lossy  # type: ignore[method-assign, assignment]
    request = question(1)
    (answer,) = written(scene, [request])
    assert lost
    assert (answer.tokens,) == tuple(expected(scene, [request]))
    assert len(sent(scene, OpenFrame)) == 2
    assert unpack(sent(scene, OpenFrame)[1].guesses) == list(answer.tokens[:3])
    assert cloud.num_passes < 60
    assert local().version.startswith("tiny@")
