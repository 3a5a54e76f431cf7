"""Real edges and clouds among peers that are wrong: another model, another version, bad certificates, garbage."""

import contextlib
import os
import random
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from htfi.adapters.certs.authority import CertificateRole, make_certificates
from htfi.adapters.grpc.transport import GrpcTransport
from htfi.decoding.link.frames import (
    PROTOCOL,
    AcceptedFrame,
    Frame,
    HelloFrame,
    OpenFrame,
    RefusalReason,
    RefusedFrame,
    WelcomeFrame,
    decode,
    encode,
    pack,
    prefix_hash,
)
from htfi.decoding.link.ports import StreamEvent
from htfi.domain.errors import InvalidInput
from link_nodes import opening_bytes
from link_processes import (
    Outcome,
    Stage,
    environment,
    finish,
    htfi,
    lines,
    outcome,
    same_answers,
    wait_for_lines,
)
from network_namespaces import network_namespaces, skip_unless_possible
from random_pair import write_random_pair

pytestmark = pytest.mark.slow
NODES = [
    ("cloud1", CertificateRole.CLOUD),
    ("cloud2", CertificateRole.CLOUD),
    ("edge1", CertificateRole.EDGE),
    ("edge2", CertificateRole.EDGE),
]
# a clock that is two minutes ahead for the process that loads it
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int status = real(id, at);
  if (!status && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += 120;
  return status;
}
int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now;
  int status = clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000;
  return status;
}
time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
"""


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs")
    make_certificates(folder, NODES)
    return folder


@contextmanager
def fake_cloud(answer: "Answer") -> Iterator[tuple[str, int]]:
    """A cloud that says what `answer` makes of each frame, from a thread of this process."""
    transport = GrpcTransport(
        "cloud1", tls=None, rng=np.random.Generator(np.random.PCG64(1)), listen="127.0.0.1:0"
    )
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            arrival = transport.receive(0.05)
            if arrival is not None and arrival.event is StreamEvent.FRAME:
                with suppress(InvalidInput):
                    for frame in answer(decode(arrival.body)):
                        transport.send(arrival.stream, encode(frame))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield "127.0.0.1", transport.port
    finally:
        stop.set()
        thread.join(5.0)
        transport.close()


class Answer:
    """A cloud of this version, of this target, that answers every request with tokens of its own making."""

    def __init__(self, version: int, target: str = "") -> None:
        self.version, self.target = version, target
        self.heard: list[Frame] = []

    def __call__(self, frame: Frame) -> list[Frame]:
        self.heard.append(frame)
        if isinstance(frame, HelloFrame):
            target = self.target or frame.target
            return [WelcomeFrame(self.version, "cloud1", target, frame.tokenizer, 1, False, (), 16)]
        if isinstance(frame, OpenFrame):
            made = [7, 7, 7]
            return [AcceptedFrame(frame.handle, frame.epoch, 0, prefix_hash(made), -1, True, pack(made))]
        return []


def goes_on_alone(
    stage: Stage, sources: list[Path], clouds: dict[str, tuple[str, int]], embedded: Outcome
) -> str:
    """The edge makes every decision, none of them with a word of those clouds; what it said and noted."""
    out = stage.folder / "alone"
    edge, said = stage.edge(sources, out, clouds, env=environment(HTFI_PIPELINE__LATE_WAIT_MS="500"))
    finish(edge, said)
    told = said.read_text() + (out / "peers.jsonl").read_text()
    got = outcome(out)
    same_answers(got, embedded, told[-2000:])
    asked = {which for which, tokens in embedded.tokens.items() if tokens}
    assert got.provisional == asked - embedded.planned_drafts, told[-2000:]
    assert len(got.provisional) > 50
    return told


def test_a_cloud_of_another_protocol_version_is_named_and_not_used(
    stage: Stage, link_sources: list[Path], embedded: Outcome
) -> None:
    answer = Answer(PROTOCOL + 1)
    with fake_cloud(answer) as address:
        told = goes_on_alone(stage, link_sources, {"cloud1": address}, embedded)
    assert "protocol" in told, told[-3000:]
    assert not [frame for frame in answer.heard if isinstance(frame, OpenFrame)]


def test_a_cloud_with_another_model_is_named_and_not_used(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path
) -> None:
    target, draft = write_random_pair(tmp_path / "pair")
    cloud = stage.cloud("cloud1", "--target", target, "--draft", draft)
    told = goes_on_alone(stage, link_sources, {"cloud1": cloud.address}, embedded)
    assert "digest" in told or "model" in told.partition("cloud1")[2], told[-3000:]
    assert cloud.process.poll() is None


def test_an_edge_of_another_protocol_version_is_refused_by_name_and_others_work_on(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path
) -> None:
    cloud = stage.cloud()
    edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address})
    rng = np.random.Generator(np.random.PCG64(2))
    host, port = cloud.address
    stranger = GrpcTransport("edge9", tls=None, rng=rng, peers={"cloud1": f"{host}:{port}"})
    refused: list[RefusedFrame] = []
    began = time.monotonic()
    while not refused and time.monotonic() - began < 20.0:
        arrival = stranger.receive(0.5)
        if arrival is not None and arrival.event is StreamEvent.UP:
            stranger.send(arrival.stream, encode(HelloFrame(PROTOCOL + 1, "edge9", "", "")))
        elif arrival is not None and arrival.event is StreamEvent.FRAME:
            frame = decode(arrival.body)
            refused += [frame] if isinstance(frame, RefusedFrame) else []
    stranger.close()
    assert refused
    assert refused[0].reason == RefusalReason.VERSION, refused[0]
    finish(edge, said)
    same_answers(outcome(tmp_path / "out"), embedded, said.read_text()[-2000:])


def test_a_cloud_with_a_certificate_of_another_authority_is_named_and_not_used(
    stage: Stage, link_sources: list[Path], embedded: Outcome, certs: Path, tmp_path: Path
) -> None:
    make_certificates(tmp_path / "strangers", NODES)
    stage.certs = tmp_path / "strangers"
    cloud = stage.cloud()
    stage.certs = certs
    told = goes_on_alone(stage, link_sources, {"cloud1": cloud.address}, embedded)
    assert "certificate of cloud1 is signed by another authority" in told, told[-3000:]


def test_a_cloud_whose_certificate_expires_while_it_serves_is_named_and_not_used(
    stage: Stage, link_sources: list[Path], embedded: Outcome, certs: Path, tmp_path: Path
) -> None:
    stage.certs = expired_at(datetime.now(UTC) + timedelta(seconds=12), certs, tmp_path)
    began = time.monotonic()
    cloud = stage.cloud()
    time.sleep(max(0.0, 13.0 - (time.monotonic() - began)))
    stage.certs = certs
    told = goes_on_alone(stage, link_sources, {"cloud1": cloud.address}, embedded)
    assert "certificate of cloud1 expired on" in told, told[-3000:]


def test_nodes_whose_certificates_have_expired_do_not_start_and_say_so_in_one_line(
    stage: Stage, link_sources: list[Path], certs: Path, tmp_path: Path
) -> None:
    stage.certs = expired_at(datetime.now(UTC) - timedelta(days=2), certs, tmp_path)
    (stage.certs / "edge1.pem").unlink()
    make_certificates(stage.certs, NODES, num_days=1, now=datetime.now(UTC) - timedelta(days=3))
    cloud = stage.start(htfi("cloud", "--listen", "127.0.0.1:0", *stage.trust), "cloud1")
    edge = stage.edge(link_sources, tmp_path / "out", {"cloud1": ("127.0.0.1", 9)})
    for process, said in (cloud, edge):
        assert process.wait(30.0) == 1
        assert "expired on" in said.read_text()
        assert said.read_text().count("\n") == 1, said.read_text()


def expired_at(when: datetime, certs: Path, tmp_path: Path) -> Path:
    """The same authority's certificates, of which cloud1's is valid until then."""
    folder = tmp_path / "expiring"
    shutil.copytree(certs, folder)
    for name in ("cloud1.pem", "cloud1.key"):
        (folder / name).unlink()
    make_certificates(folder, NODES, num_days=1, now=when - timedelta(days=1))
    return folder


def test_200_connections_of_garbage_disturb_no_edge(
    stage: Stage, link_sources: list[Path], embedded: Outcome, certs: Path, tmp_path: Path
) -> None:
    seed = 11
    rng = random.Random(seed)
    stage.certs = certs
    cloud = stage.cloud()
    edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address})
    wait_for_lines(tmp_path / "out", edge, 5)
    open_ones: list[socket.socket] = []
    num_bytes = 0
    while edge.poll() is None and num_bytes < 1 << 24:
        while len(open_ones) < 200:
            with suppress(OSError):
                open_ones.append(socket.create_connection(cloud.address, timeout=2.0))
        for one in list(open_ones):
            data = rng.randbytes(rng.choice((1, 24, 300, 5_000)))
            if rng.random() < 0.3:
                data = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + data
            try:
                one.setblocking(False)
                num_bytes += one.send(data)
            except BlockingIOError:
                pass
            except OSError:
                one.close()
                open_ones.remove(one)
        time.sleep(0.02)
    for one in open_ones:
        one.close()
    finish(edge, said, f"seed {seed}")
    assert cloud.process.poll() is None, cloud.said.read_text()[-2000:]
    got = outcome(tmp_path / "out")
    same_answers(got, embedded, f"seed {seed}\n{said.read_text()[-2000:]}")
    assert not got.provisional, f"seed {seed}"
    assert num_bytes > 100_000


@pytest.mark.parametrize("who", ["edge", "cloud"])
def test_a_clock_two_minutes_ahead_changes_nothing(
    stage: Stage, link_sources: list[Path], embedded: Outcome, certs: Path, tmp_path: Path, who: str
) -> None:
    shim = clock_shim(tmp_path)
    ahead = environment(LD_PRELOAD=str(shim))
    stage.certs = certs
    cloud = stage.cloud(env=ahead if who == "cloud" else environment())
    edge, said = stage.edge(
        link_sources,
        tmp_path / "out",
        {"cloud1": cloud.address},
        env=ahead if who == "edge" else environment(),
    )
    finish(edge, said)
    got = outcome(tmp_path / "out")
    same_answers(got, embedded, said.read_text()[-2000:])
    assert not got.provisional, said.read_text()[-2000:]
    assert any("cloud1" in place for place in got.places)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_a_path_that_is_no_text_does_not_end_a_clouds_service(
    stage: Stage, link_sources: list[Path], embedded: Outcome, certs: Path, tmp_path: Path, secure: bool
) -> None:
    if secure:
        stage.certs = certs
    cloud = stage.cloud()
    with contextlib.ExitStack() as stack:
        one = stack.enter_context(socket.create_connection(cloud.address, timeout=5.0))
        if secure:
            context = ssl.create_default_context(cafile=certs / "ca.pem")
            context.load_cert_chain(certs / "edge2.pem", certs / "edge2.key")
            context.set_alpn_protocols(["h2"])
            one = stack.enter_context(context.wrap_socket(one, server_hostname="cloud1"))
        one.sendall(opening_bytes().replace(b"Link/Stream", b"Link/Stre\xe1m"))
        time.sleep(1.0)
    edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address})
    finish(edge, said)
    got = outcome(tmp_path / "out")
    same_answers(got, embedded, said.read_text()[-2000:])
    assert not got.provisional, f"{cloud.said.read_text()[-2000:]}\n{said.read_text()[-2000:]}"


def clock_shim(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler, so no clock of its own for a process")
    source, shim = folder / "ahead.c", folder / "ahead.so"
    source.write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
    command = ["python3", "-c", "import time; print(time.time())"]
    told = subprocess.run(
        command, env={**os.environ, "LD_PRELOAD": str(shim)}, capture_output=True, check=True
    )
    assert 110 < float(told.stdout) - time.time() < 130
    return shim


def test_two_edges_in_their_own_namespaces_survive_a_cut_to_their_cloud(
    stage: Stage, link_sources: list[Path], embedded: Outcome, certs: Path, tmp_path: Path
) -> None:
    skip_unless_possible()
    stage.certs = certs
    with network_namespaces(3) as (there, here, beside):
        cloud = stage.cloud(listen=there.address, prefix=("ip", "netns", "exec", there.name))
        assert cloud.address[0] == there.address
        edges = [
            (out, *stage.edge(
                link_sources, out, {"cloud1": cloud.address}, name=name,
                prefix=("ip", "netns", "exec", machine.name),
            ))
            for machine, name, out in ((here, "edge1", tmp_path / "one"), (beside, "edge2", tmp_path / "two"))
        ]  # fmt: skip
        wait_for_lines(edges[0][0], edges[0][1], 20)
        here.cut()
        time.sleep(2.0)
        num_alone = len(lines(edges[0][0]))
        here.mend()
        for out, edge, said in edges:
            finish(edge, said)
            got = outcome(out)
            same_answers(got, embedded, said.read_text()[-2000:])
            assert not got.provisional, f"{out.name}\n{said.read_text()[-2000:]}"
            assert any("cloud1" in place for place in got.places)
        assert num_alone > 20, "it goes on while it is cut off"
