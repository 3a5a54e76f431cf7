"""A desk that is sent anything at all: it never raises, never hangs, and answers those who behave."""

import random

import msgspec
import pytest

from htfi.decoding.config import VerificationServerConfig
from htfi.decoding.link import frames
from htfi.decoding.link.frames import DraftMode, PartFrame
from outcome_pair import VIEW, requests
from server_world import Edge, Time, deliver, desk, run, truth


def anything(dice: random.Random, depth: int = 0) -> object:
    kind = dice.randrange(9 if depth < 3 else 6)
    match kind:
        case 0:
            return dice.choice([0, 1, -1, 2**31, 2**63 - 1, -(2**63), 2**64 - 1])
        case 1:
            return dice.choice([0.0, float("nan"), float("inf"), -1.5, 1e300])
        case 2:
            return dice.randbytes(dice.choice([0, 1, 16, 16, 300]))
        case 3:
            return dice.choice(["", "edge", "é" * 100, "\x00", "x" * 10_000])
        case 4:
            return dice.choice([None, True, False])
        case 5:
            return dice.randrange(300)
        case _:
            return [anything(dice, depth + 1) for _ in range(dice.randrange(16))]


def mutated(dice: random.Random, body: bytes) -> bytes:
    """A frame as it could have been, with some of it changed."""
    act = dice.randrange(5)
    if act == 0:
        return dice.randbytes(dice.randrange(200))
    if act == 1:
        return body[: dice.randrange(len(body) + 1)]
    if act == 2:
        changed = bytearray(body)
        for _ in range(dice.randrange(1, 4)):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        return bytes(changed)
    if act == 3:
        return msgspec.msgpack.encode(
            [dice.randrange(12), *(anything(dice) for _ in range(dice.randrange(18)))]
        )
    said = msgspec.msgpack.decode(body)
    said[dice.randrange(1, len(said))] = anything(dice)
    return msgspec.msgpack.encode(said)


@pytest.mark.parametrize("seed", range(4))
def test_desk_survives_whatever_frames_say_and_serves_the_others(seed: int):
    print(f"seed {seed}")  # noqa: T201
    dice = random.Random(seed)
    time = Time()
    cloud = desk(VerificationServerConfig(max_strikes=30, parts_ms=50.0), has_draft=True, time=time)
    good = Edge(cloud, "good", "good")
    asked = [*requests(4), *requests(4, VIEW)]
    for handle, request in enumerate(asked):
        good.say(good.opening(request, handle, dice.choice(list(DraftMode))))
    bad = Edge(cloud, "bad0", "bad")
    num_bad = 1
    for num in range(600):
        opening = bad.opening(asked[num % 8], num % 50, dice.choice(list(DraftMode)), epoch=num // 200)
        samples = [
            opening,
            bad.window(num % 50, dice.randrange(16), [1, 2, 3], 3),
            frames.CancelFrame(num % 50, 0),
        ]
        samples += [PartFrame(name, 0, len(data), data) for name, data in bad.parts.items()]
        _, body = frames.unseal(frames.encode(dice.choice(samples)))
        bad.raw(mutated(dice, body) if dice.random() < 0.7 else body)
        if dice.random() < 0.3:
            cloud.step()
            deliver(cloud, bad, good)
            time.now_s += 0.01
        if bad.dropped or dice.random() < 0.01:
            bad.down()
            bad = Edge(cloud, f"bad{num_bad}", "bad")
            num_bad += 1
    bad.down()
    for _ in range(60):
        run(cloud, bad, good)
        time.now_s += 1.0
    for handle, request in enumerate(asked):
        assert tuple(good.done[handle]) == truth(request).tokens
    assert not good.refused()
    assert cloud.is_idle
    assert cloud.scheduler.engine.sessions.arena.num_rows == 0
    assert num_bad > 3


def test_two_hundred_streams_of_garbage_delay_nobody():
    seed = 5
    print(f"seed {seed}")  # noqa: T201
    dice = random.Random(seed)
    cloud = desk(VerificationServerConfig(max_streams=300))
    good = Edge(cloud, "good", "good")
    bad = [Edge(cloud, f"bad{i}", f"bad{i}", greets=dice.random() < 0.5) for i in range(200)]
    (request,) = requests(1)
    good.say(good.opening(request))
    for edge in bad:
        for _ in range(20):
            edge.raw(dice.randbytes(dice.randrange(100)))
    num_steps = run(cloud, good, *bad)
    assert tuple(good.done[1]) == truth(request).tokens
    assert num_steps <= len(good.done[1]) + 2
    assert all(edge.dropped for edge in bad)
    assert cloud.metrics.num_streams == 1
