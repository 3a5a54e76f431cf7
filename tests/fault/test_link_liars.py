"""Peers with a good certificate and a bad mind: frames that cannot be what they say, to and from real processes."""

import random
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from htfi.adapters.grpc.transport import GrpcTransport
from htfi.decoding.link.frames import (
    PROTOCOL,
    AcceptedFrame,
    CancelFrame,
    DraftMode,
    DraftWindowFrame,
    Frame,
    FrameChannel,
    HelloFrame,
    NeedFrame,
    OpenFrame,
    PartFrame,
    RefusedFrame,
    WelcomeFrame,
    decode,
    encode,
    pack,
    prefix_hash,
    seal,
    seal_health,
)
from htfi.decoding.link.ports import StreamEvent
from htfi.domain.errors import InvalidInput
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.messages import NodeHealthMetrics
from htfi.scheduling.health.node import NodeMonitor
from link_processes import Outcome, Stage, environment, finish, lines, outcome, same_answers

pytestmark = pytest.mark.slow
NUMBERS = (-1, 0, 1, 2, 15, 255, 65_535, 1 << 31, (1 << 62), -(1 << 40))


def ids(rng: random.Random) -> bytes:
    whole = pack([rng.randrange(1 << rng.choice((4, 11, 17, 23))) for _ in range(rng.randrange(40))])
    return rng.choice((whole, whole[:-1], b"", b"\x09abc", rng.randbytes(30)))


NUM_KINDS = 10


def lie(rng: random.Random, frame: Frame | None, kinds: Sequence[int] = range(NUM_KINDS)) -> bytes:
    """One sealed frame, of these kinds, that an honest peer would not send."""
    number = rng.choice(NUMBERS)
    handle, epoch = (frame.handle, frame.epoch) if isinstance(frame, OpenFrame) else (number, number)
    if rng.random() < 0.3:
        handle, epoch = rng.choice(NUMBERS), rng.choice(NUMBERS)
    made: list[Frame] = [
        AcceptedFrame(
            handle,
            epoch,
            rng.choice((0, number)),
            rng.choice((0, number)),
            number,
            rng.random() < 0.5,
            ids(rng),
        ),
        AcceptedFrame(handle, epoch, 0, prefix_hash([5, 6]), -1, True, pack([5, 6])),
        AcceptedFrame(handle, epoch, 0, 0, -1, True, b""),
        RefusedFrame(handle, epoch, number, number, "\x1b[2J" * rng.randrange(3) + "no"),
        NeedFrame(rng.randbytes(rng.choice((0, 16, 17))), number),
        WelcomeFrame(PROTOCOL, "cloud9", "0" * 64, "", number, True, (), number),
        DraftWindowFrame(handle, epoch, number, number, ids(rng)),
        CancelFrame(handle, epoch),
        PartFrame(rng.randbytes(16), number, number, rng.randbytes(100)),
        HelloFrame(PROTOCOL, "cloud1", "", ""),
    ]
    with suppress(OverflowError):  # beyond what msgpack holds
        whole = encode(made[rng.choice(kinds)])
        if rng.random() < 0.1:
            return seal(FrameChannel.LINK, rng.randbytes(60))
        if rng.random() < 0.1:
            return seal(FrameChannel.HEALTH, rng.randbytes(60))
        return whole
    return seal(FrameChannel.LINK, b"\xc0")


def odd_open(rng: random.Random) -> OpenFrame:
    return OpenFrame(
        handle=rng.randrange(4),
        request=rng.randbytes(16),
        epoch=rng.randrange(3),
        prompt=(rng.randbytes(16),) * rng.randrange(3),
        grammar=rng.randbytes(16),
        seed=rng.choice((0, 1, 1 << 40)),
        temperature=rng.choice((0.0, 1.0, -1.0, float("nan"), 1e300)),
        top_k=rng.choice(NUMBERS),
        top_p=rng.choice((0.5, 1.0, 2.0, float("inf"))),
        kind="view",
        deadline_ms=rng.choice((-5, 0, 100, 1 << 40)),
        draft_mode=rng.choice((*DraftMode, 77)),
        budget_bytes=rng.choice((0, 100, 1 << 30)),
        residency=("eu",) * rng.randrange(2),
        guesses=ids(rng),
    )


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_a_cloud_that_talks_nonsense_costs_an_edge_time_and_nothing_else(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    kinds = rng.sample(range(NUM_KINDS), 2)  # more of them, and the edge has soon had enough
    transport = GrpcTransport(
        "cloud1",
        tls=None,
        rng=np.random.Generator(np.random.PCG64(seed)),
        listen="127.0.0.1:0",
        watcher=NodeMonitor(
            "cloud1", HealthConfig(voters=("cloud1",)), NodeHealthMetrics, seal_health
        ),  # it looks well
    )
    stop, num_lies = threading.Event(), 0

    def work() -> None:
        nonlocal num_lies
        while not stop.is_set():
            arrival = transport.receive(0.05)
            if arrival is None or arrival.event is not StreamEvent.FRAME:
                continue
            try:
                frame = decode(arrival.body)
            except InvalidInput:
                continue
            if isinstance(frame, HelloFrame):
                told = WelcomeFrame(PROTOCOL, "cloud1", frame.target, frame.tokenizer, 1, True, (), 16)
                transport.send(arrival.stream, encode(told))
            elif isinstance(frame, OpenFrame | DraftWindowFrame | PartFrame):
                for _ in range(rng.randrange(4)):
                    num_lies += transport.send(arrival.stream, lie(rng, frame, kinds))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        clouds = {"cloud1": ("127.0.0.1", transport.port)}
        quick = environment(HTFI_PIPELINE__LATE_WAIT_MS="500", HTFI_PIPELINE__DEADLINE_MS="250")
        edge, said = stage.edge(link_sources, tmp_path / "out", clouds, env=quick)
        finish(edge, said, f"seed {seed}")
    finally:
        stop.set()
        thread.join(5.0)
        transport.close()
    got = outcome(tmp_path / "out")
    assert got.tokens.keys() == embedded.tokens.keys(), f"seed {seed}"
    assert "\x1b[2J" not in said.read_text(), "a peer's words reach the terminal as they are"
    assert num_lies > 0, f"seed {seed}: the edge never asked"


@pytest.mark.parametrize("seed", [1, 2])
def test_edges_that_talk_nonsense_do_not_disturb_one_that_works(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path, seed: int
) -> None:
    cloud = stage.cloud()
    host, port = cloud.address
    edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address})
    rng = random.Random(seed)
    strangers = [
        GrpcTransport(
            f"edge{k}",
            tls=None,
            rng=np.random.Generator(np.random.PCG64(k)),
            peers={"cloud1": f"{host}:{port}"},
        )
        for k in range(2, 8)
    ]
    streams: dict[int, str] = {}
    num_lies = 0
    began = time.monotonic()
    while edge.poll() is None and time.monotonic() - began < 60.0:
        for k, stranger in enumerate(strangers):
            while (arrival := stranger.receive(0.0)) is not None:
                if arrival.event is StreamEvent.UP:
                    streams[k] = arrival.stream
                    stranger.send(arrival.stream, encode(HelloFrame(PROTOCOL, f"edge{k + 2}", "", "")))
            if k in streams:
                frame = odd_open(rng)
                with suppress(OverflowError):
                    num_lies += stranger.send(streams[k], encode(frame))
                num_lies += stranger.send(streams[k], lie(rng, frame))
        time.sleep(0.02)
    for stranger in strangers:
        stranger.close()
    finish(edge, said, f"seed {seed}")
    assert cloud.process.poll() is None, f"seed {seed}: the cloud died\n{cloud.said.read_text()[-3000:]}"
    assert "Traceback" not in cloud.said.read_text(), cloud.said.read_text()[-3000:]
    got = outcome(tmp_path / "out")
    same_answers(got, embedded, f"seed {seed}\n{said.read_text()[-2000:]}")
    assert not got.provisional, f"seed {seed}: {len(got.provisional)} not amended\n{said.read_text()[-2000:]}"
    assert num_lies > 40, num_lies
    assert len(lines(tmp_path / "out")) >= len(embedded.tokens)
