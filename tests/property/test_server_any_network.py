"""Whatever order frames come in, twice, stale or with wrong guesses, from several edges: answers are the author's."""

import itertools
from functools import lru_cache

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.decoding.config import VerificationServerConfig
from htfi.decoding.link.frames import CancelFrame, DraftMode
from outcome_pair import TOKENIZER, VIEW, WORDS, requests
from server_world import Edge, Time, deliver, desk, run, truth

ASKED = [*requests(3), *requests(3, VIEW), *requests(2, WORDS)]
RELAXED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


@lru_cache
def answer(question: int) -> tuple[int, ...]:
    return truth(ASKED[question]).tokens


def guessed(data: st.DataObject, question: int) -> list[int]:
    """The answer, or what an edge might take for it."""
    text = list(answer(question))
    wrong = data.draw(st.lists(st.integers(0, len(text) - 1), max_size=2))
    for place in wrong:
        text[place] = data.draw(st.integers(0, TOKENIZER.vocab_size - 1))
    return text


@given(data=st.data(), has_draft=st.booleans())
@settings(max_examples=examples(60), phases=[Phase.generate], **RELAXED)
def test_every_answer_is_the_authors_in_any_order_of_frames(data: st.DataObject, has_draft: bool):
    time = Time()
    cloud = desk(
        VerificationServerConfig(max_strikes=10_000, max_listeners=64), has_draft=has_draft, time=time
    )
    edges = [Edge(cloud, f"s{i}", f"edge{i % 2}") for i in range(3)]
    opened: dict[tuple[int, int], tuple[int, int]] = {}  # stream, handle → question, epoch
    left: set[tuple[int, int]] = set()
    handles = itertools.count()
    for _ in range(data.draw(st.integers(5, 40))):
        act = data.draw(
            st.sampled_from(
                [
                    "open",
                    "open",
                    "again",
                    "window",
                    "window",
                    "twice",
                    "step",
                    "hear",
                    "wait",
                    "leave",
                    "down",
                ]
            )
        )
        at = data.draw(st.integers(0, len(edges) - 1))
        edge = edges[at]
        mine = [(key, value) for key, value in opened.items() if key[0] == at]
        if act == "open":
            question, handle = data.draw(st.integers(0, len(ASKED) - 1)), next(handles)
            first = guessed(data, question)[: data.draw(st.integers(0, 30))]
            lead = data.draw(st.sampled_from(list(DraftMode)))
            edge.say(
                edge.opening(
                    ASKED[question],
                    handle,
                    lead,
                    guesses=first,
                    budget_bytes=data.draw(st.sampled_from([0, 150, 500])),
                )
            )
            opened[at, handle] = (question, 0)
        elif act in ("again", "window", "twice", "leave") and mine:
            key, (question, epoch) = data.draw(st.sampled_from(mine))
            handle = key[1]
            if act == "again":
                lead = data.draw(st.sampled_from(list(DraftMode)))
                epoch += data.draw(st.integers(-1, 2))
                if key in left or (epoch <= opened[key][1] and handle in edge.done):
                    continue  # no edge does
                edge.say(edge.opening(ASKED[question], handle, lead, max(epoch, 0)))
                if epoch > opened[key][1]:
                    opened[key] = (question, epoch)
            elif act == "leave":
                if data.draw(st.booleans()):
                    edge.say(CancelFrame(handle, epoch))
                    left.add(key)
            else:
                text = guessed(data, question)
                place = data.draw(st.integers(0, len(text) - 1))
                window = edge.window(
                    handle,
                    place,
                    text,
                    data.draw(st.integers(0, 6)),
                    max(epoch - (act == "twice" and data.draw(st.booleans())), 0),
                )
                for _ in range(2 if act == "twice" else 1):
                    edge.say(window)
        elif act == "step":
            for _ in range(data.draw(st.integers(1, 4))):
                cloud.step()
        elif act == "hear":
            deliver(cloud, *edges)
        elif act == "wait":
            time.now_s += data.draw(st.sampled_from([0.01, 0.5]))
        elif act == "down" and data.draw(st.booleans()):
            edge.down()
            edges[at] = Edge(cloud, f"{edge.stream}+", edge.node)
            for key, _ in mine:
                del opened[key]
    for _ in range(60):
        run(cloud, *edges)
        time.now_s += 1.0
    for (at, handle), (question, _) in opened.items():
        if (at, handle) in left and handle not in edges[at].done:
            continue
        budget_refused = [
            frame for frame in edges[at].refused() if frame.handle == handle and "may take" in frame.message
        ]
        if handle not in edges[at].done and budget_refused:
            continue
        assert tuple(edges[at].done[handle]) == answer(question), (handle, edges[at].refused())
    assert cloud.is_idle
    assert not cloud.scheduler.writing
    assert not cloud.scheduler.waiting
    assert cloud.scheduler.engine.sessions.arena.num_rows == 0
