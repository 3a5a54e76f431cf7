"""The link's transport among peers that are wrong, slow, dead or hostile."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from checks import sooner_than
from htfi.adapters.certs.authority import CertificateRole, make_certificates
from htfi.adapters.grpc.library import METHOD, SERVICE, TransportLimits
from htfi.adapters.grpc.tls import TlsFiles
from htfi.adapters.grpc.transport import GrpcTransport
from htfi.decoding.link.frames import MAX_FRAME_BYTES, FrameChannel, RefusalReason, RefusedFrame, decode, seal
from htfi.decoding.link.ports import StreamEvent
from htfi.domain.errors import InvalidInput
from link_nodes import PATIENCE_S, Nodes, Notes, certify, files, link, next_of, opening_bytes, until

UP, FRAME, DOWN = StreamEvent.UP, StreamEvent.FRAME, StreamEvent.DOWN


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same names under another authority."""
    return certify(tmp_path_factory.mktemp("strangers"))


@pytest.fixture
def nodes(folder: Path) -> Iterator[Nodes]:
    made = Nodes(folder)
    yield made
    made.close()


def _trouble(nodes: Nodes, port: int, **others: Any) -> str:
    """What an edge says that dials cloud1 there."""
    notes = Notes()
    edge = nodes.edge({"cloud1": port}, trouble=notes.trouble, **others)
    until(lambda: bool(notes.troubles))
    assert all(arrival.event is not UP for arrival in iter(lambda: edge.receive(0), None))
    edge.close()
    (words,) = {words for _, words in notes.troubles}
    return words


def _call(folder: Path | None, port: int, messages: Iterator[bytes], node: str = "edge1") -> Any:
    """A client of the library's own, which need not keep to our manners."""
    options = [("grpc.ssl_target_name_override", "cloud1"), ("grpc.max_send_message_length", -1)]
    if folder is None:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options)
    else:
        parts = [(folder / name).read_bytes() for name in ("ca.pem", f"{node}.key", f"{node}.pem")]
        channel = grpc.secure_channel(f"127.0.0.1:{port}", grpc.ssl_channel_credentials(*parts), options)
    return channel, channel.stream_stream(f"/{SERVICE}/{METHOD}")(messages, timeout=20)


# Who the peer is


def test_a_cloud_of_another_authority_is_not_trusted_and_its_fault_named(
    nodes: Nodes, strangers: Path
) -> None:
    cloud = Nodes(strangers).cloud()
    try:
        assert _trouble(nodes, cloud.port) == "certificate of cloud1 is signed by another authority"
        assert cloud.receive(0) is None
    finally:
        cloud.close()


def test_an_edge_of_another_authority_is_not_let_in_and_knows_why(
    nodes: Nodes, folder: Path, strangers: Path, tmp_path: Path
) -> None:
    cloud = nodes.cloud()
    # It trusts the cloud's authority; its own certificate is another's, with which it vouches for itself.
    both = tmp_path / "both.pem"
    both.write_bytes((folder / "ca.pem").read_bytes() + (strangers / "ca.pem").read_bytes())
    tls = TlsFiles(both, strangers / "edge1.pem", strangers / "edge1.key")
    words = _trouble(nodes, cloud.port, tls=tls)
    assert words == (
        f"cloud1 at 127.0.0.1:{cloud.port} refuses our certificate: does it trust another authority?"
    )
    assert cloud.receive(0) is None


@pytest.mark.slow
def test_a_certificate_that_expires_stops_new_streams_on_either_side_and_is_named(tmp_path: Path) -> None:
    soon = datetime.now(UTC) - timedelta(days=1) + timedelta(seconds=2.5)
    for role, name, other in (
        (CertificateRole.CLOUD, "cloud1", "edge1"),
        (CertificateRole.EDGE, "edge1", "cloud1"),
    ):
        folder = tmp_path / name
        make_certificates(folder, [(name, role)], num_days=1, now=soon)
        make_certificates(
            folder,
            [(other, CertificateRole.EDGE if role is CertificateRole.CLOUD else CertificateRole.CLOUD)],
        )
    late_cloud, late_edge = Nodes(tmp_path / "cloud1"), Nodes(tmp_path / "edge1")
    notes = Notes()
    try:
        expiring = late_cloud.cloud()
        cloud = late_edge.cloud()
        # Dials nobody until it has expired.
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
        late_edge.edge({"cloud1": port}, trouble=notes.trouble)
        time.sleep(max(0.0, (soon + timedelta(days=1) - datetime.now(UTC)).total_seconds() + 1.1))
        day = f"{soon + timedelta(days=1):%Y-%m-%d}"
        assert _trouble(late_cloud, expiring.port) == f"certificate of cloud1 expired on {day}"
        cloud.close()
        late_edge.cloud(port=port)
        until(lambda: notes.troubles[-1][1] == f"our own certificate expired on {day}")
        with pytest.raises(InvalidInput, match=r"edge1\.pem expired on .*: renew it"):
            late_edge.edge({"cloud1": port})
    finally:
        late_cloud.close()
        late_edge.close()


def test_a_cloud_under_another_name_is_not_the_one_that_was_dialled(nodes: Nodes) -> None:
    cloud2 = nodes.cloud("cloud2")
    assert _trouble(nodes, cloud2.port) == "the certificate names cloud2, not cloud1"
    assert cloud2.receive(0) is None


def test_in_plaintext_as_well(folder: Path) -> None:
    plain = Nodes(None)
    try:
        cloud2 = plain.cloud("cloud2")
        assert _trouble(plain, cloud2.port) == f"127.0.0.1:{cloud2.port} is cloud2, not cloud1"
    finally:
        plain.close()


def test_an_edges_certificate_cannot_be_a_servers(nodes: Nodes, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"edge1\.pem is an edge's"):
        nodes.node("edge1", listen="127.0.0.1:0")
    # A thief who runs a server of another make with it, and an edge that was told the address.
    key, chain = ((folder / name).read_bytes() for name in ("edge1.key", "edge1.pem"))
    with ThreadPoolExecutor(1) as pool:
        thief = grpc.server(pool)
        port = thief.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)]))
        thief.start()
        notes = Notes()
        edge = nodes.edge({"edge1": port}, node="edge2", trouble=notes.trouble)
        until(lambda: bool(notes.troubles))
        thief.stop(None).wait()
    assert notes.troubles[0] == ("edge1", "certificate of edge1 is an edge's, not a server's")
    assert edge.receive(0) is None


def test_plaintext_and_tls_do_not_meet(nodes: Nodes) -> None:
    plain = Nodes(None)
    try:
        secure_cloud, plain_cloud = nodes.cloud(), plain.cloud()
        words = _trouble(plain, secure_cloud.port)
        assert words.startswith(f"127.0.0.1:{secure_cloud.port} does not speak our protocol without TLS")
        assert _trouble(nodes, plain_cloud.port) == f"127.0.0.1:{plain_cloud.port} does not speak TLS"
        assert secure_cloud.receive(0) is plain_cloud.receive(0) is None
    finally:
        plain.close()


def test_a_client_without_a_certificate_is_refused(nodes: Nodes, folder: Path) -> None:
    cloud = nodes.cloud()
    credentials = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes())
    options = [("grpc.ssl_target_name_override", "cloud1")]
    with grpc.secure_channel(f"127.0.0.1:{cloud.port}", credentials, options) as channel:
        call = channel.stream_stream(f"/{SERVICE}/{METHOD}")(iter([link(b"x")]), timeout=5)
        with pytest.raises(grpc.RpcError):
            next(call)
    assert cloud.receive(0) is None


@pytest.mark.parametrize("what", ["absent", "garbled", "mismatched", "strange", "misnamed"])
def test_files_that_are_not_in_order_stop_the_start_in_one_line(
    what: str, folder: Path, strangers: Path, tmp_path: Path
) -> None:
    (tmp_path / "garbled.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    tls, words = {
        "absent": (files(tmp_path, "edge1"), "there is no .*ca.pem: make certificates with `htfi certs`"),
        "garbled": (
            TlsFiles(folder / "ca.pem", tmp_path / "garbled.pem", folder / "edge1.key"),
            "garbled.pem is not a PEM certificate",
        ),
        "mismatched": (
            TlsFiles(folder / "ca.pem", folder / "edge1.pem", folder / "edge2.key"),
            "edge2.key is not the key of .*edge1.pem",
        ),
        "strange": (
            TlsFiles(folder / "ca.pem", strangers / "edge1.pem", strangers / "edge1.key"),
            "edge1.pem is not signed by .*ca.pem",
        ),
        "misnamed": (files(folder, "edge2"), "edge2.pem names edge2, not edge1"),
    }[what]
    with pytest.raises(InvalidInput, match=words) as raised:
        Nodes(None).node("edge1", tls=tls)
    assert "\n" not in str(raised.value)


# What the peer sends


def test_a_frame_that_comes_damaged_is_refused_by_name_and_ends_its_stream_which_is_dialled_anew(
    nodes: Nodes,
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - a fault test tells how to have it again
    dice = random.Random(seed)
    cloud = nodes.cloud()
    edge = nodes.edge({"cloud1": cloud.port})
    for number in range(4):
        sides = [(edge, next_of(edge, UP).stream, cloud), (cloud, next_of(cloud, UP).stream, edge)]
        (sender, stream, receiver), (_, there, _) = sides if number % 2 else sides[::-1]
        sealed = bytearray(link(dice.randbytes(40)))
        sealed[dice.randrange(len(sealed))] ^= 1 << dice.randrange(8)
        assert sender.send(stream, link(b"before"))
        assert sender.send(stream, bytes(sealed))
        sender.send(stream, link(b"behind"))
        refused = decode(next_of(sender, FRAME).body)
        assert isinstance(refused, RefusedFrame)
        assert (refused.handle, refused.reason) == (-1, RefusalReason.MALFORMED)
        assert "wrong checksum" in refused.message
        assert next_of(receiver, FRAME).body == b"before"
        end = receiver.receive(2.0)
        assert end is not None
        assert (end.event, end.stream) == (DOWN, there), "what lies behind it is not delivered"
        assert "cannot be read: " in end.reason
        next_of(sender, DOWN)
    assert next_of(edge, UP).node == "cloud1"
    assert cloud.total().num_bad == edge.total().num_bad == 2


def test_bodies_that_the_watcher_rejects_end_a_stream_when_they_are_many(nodes: Nodes) -> None:
    class Strict(Notes):
        def received(self, stream: str, node: str, body: bytes) -> None:
            raise InvalidInput("not a heartbeat")

    cloud = nodes.cloud(watcher=Strict())
    edge = nodes.edge({"cloud1": cloud.port})
    stream, at_cloud = next_of(edge, UP).stream, next_of(cloud, UP).stream
    for _ in range(15):
        edge.send(stream, seal(FrameChannel.HEALTH, b"?"))
        refused = decode(next_of(edge, FRAME).body)
        assert refused == RefusedFrame(-1, 0, RefusalReason.MALFORMED, -1, "not a heartbeat")
    edge.send(stream, link(b"good"))
    assert next_of(cloud, FRAME).body == b"good"
    assert cloud.traffic()[at_cloud].num_bad == 15
    edge.send(stream, seal(FrameChannel.HEALTH, b"?"))
    assert next_of(cloud, DOWN).reason == "16 frames that cannot be read, the last: not a heartbeat"
    assert next_of(edge, DOWN).reason.startswith("16 frames that cannot be read")
    next_of(edge, UP)


def test_a_path_that_is_no_text_closes_the_port_for_a_moment_and_ends_no_stream() -> None:
    plain = Nodes(None)
    try:
        notes = Notes()
        cloud = plain.cloud(trouble=notes.trouble)
        edge = plain.edge({"cloud1": cloud.port})
        stream = next_of(edge, UP).stream
        next_of(cloud, UP)
        said = opening_bytes().replace(b"Link/Stream", b"Link/Stre\xe1m")
        for number in range(1, 4):
            with socket.create_connection(("127.0.0.1", cloud.port), timeout=5) as stranger:
                stranger.sendall(said)
                until(lambda number=number: len(notes.troubles) == 2 * number)
        assert [words for _, words in notes.troubles[1::2]] == ["", "", ""]
        assert all(node == "cloud1" and "closed its port" in told for node, told in notes.troubles[::2])
        assert cloud.is_listening
        assert not edge.is_listening
        assert edge.send(stream, link(b"still here"))
        assert next_of(cloud, FRAME).body == b"still here"
        late = plain.edge({"cloud1": cloud.port}, node="edge2")
        assert next_of(late, UP).node == "cloud1"
        assert edge.receive(0) is None
    finally:
        plain.close()


def test_a_port_that_another_takes_meanwhile_is_opened_when_it_is_free() -> None:
    plain = Nodes(None)
    try:
        cloud = plain.cloud()
        said = opening_bytes().replace(b"Link/Stream", b"Link/Stre\xe1m")
        seen: list[bool] = []
        with socket.create_connection(("127.0.0.1", cloud.port), timeout=5) as stranger:
            stranger.sendall(said)
            thief = _take(cloud.port)
            with thief:
                until(lambda: not cloud.is_listening)
                time.sleep(0.1)
                seen.append(cloud.is_listening)
            until(lambda: cloud.is_listening)
        assert seen == [False]
        assert next_of(plain.edge({"cloud1": cloud.port}), UP).node == "cloud1"
    finally:
        plain.close()


def _take(port: int) -> socket.socket:
    """The port, as soon as it is free."""
    until_s = time.monotonic() + 5.0
    while True:
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError:
            assert time.monotonic() < until_s, "the port is never free"


def test_a_message_above_the_bound_ends_that_stream_alone(nodes: Nodes, folder: Path) -> None:
    cloud = nodes.cloud()
    other = nodes.edge({"cloud1": cloud.port}, node="edge2")
    stream = next_of(other, UP).stream
    next_of(cloud, UP)
    channel, call = _call(folder, cloud.port, iter([link(b"fine"), bytes(MAX_FRAME_BYTES + 1)]))
    with channel:
        assert next_of(cloud, UP).node == "edge1"
        assert next_of(cloud, FRAME).body == b"fine"
        assert next_of(cloud, DOWN).node == "edge1"
        with pytest.raises(grpc.RpcError) as raised:
            next(call)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert other.send(stream, link(b"still here"))
    assert next_of(cloud, FRAME).body == b"still here"


def test_a_peer_that_does_not_read_fills_its_outbox_and_nothing_else(nodes: Nodes, folder: Path) -> None:
    cloud = nodes.cloud()
    done = False

    def silence() -> Iterator[bytes]:
        while not done:
            time.sleep(0.02)
        yield from ()

    channel, _ = _call(folder, cloud.port, silence())
    with channel:
        slow = next_of(cloud, UP).stream
        sealed = link(bytes(60_000))
        num_taken = 0
        while cloud.send(slow, sealed):
            num_taken += 1
            time.sleep(0.001)
            assert num_taken * len(sealed) < 8 << 20, "it takes without end"
        time.sleep(0.1)
        other = nodes.edge({"cloud1": cloud.port}, node="edge2")
        stream, at_cloud = next_of(other, UP).stream, next_of(cloud, UP).stream
        assert (
            len(_round_trips_s(cloud, at_cloud, other, stream, 50)) == 50
        )  # each is waited for with patience
        cloud.drop(slow, "it does not read")
        assert next_of(cloud, DOWN).reason == "it does not read"
        assert not cloud.send(slow, sealed)
        done = True
        with sooner_than(PATIENCE_S):
            cloud.close(0.2)


def test_a_caller_that_does_not_receive_holds_the_sender_back(nodes: Nodes) -> None:
    cloud = nodes.cloud(bounds=TransportLimits(inbox_bytes=MAX_FRAME_BYTES))
    edge = nodes.edge({"cloud1": cloud.port}, bounds=TransportLimits(outbox_bytes=MAX_FRAME_BYTES))
    stream = next_of(edge, UP).stream
    sealed = link(bytes(30_000))
    num_sent, refused_s = 0, 0.0
    while refused_s < 0.5:  # until nothing moves any more
        if edge.send(stream, sealed):
            num_sent, refused_s = num_sent + 1, 0.0
        else:
            time.sleep(0.01)
            refused_s += 0.01
        assert num_sent * len(sealed) < 4 << 20, "it takes without end"
    assert all(next_of(cloud, FRAME).body == bytes(30_000) for _ in range(num_sent))
    assert edge.send(stream, link(b"more"))
    assert next_of(cloud, FRAME).body == b"more"


# What becomes of the peer


def test_a_killed_peer_is_noticed_and_its_successor_taken(nodes: Nodes, folder: Path) -> None:
    cloud = nodes.cloud()
    child = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from link_nodes import Nodes\n"
        "nodes = Nodes(Path(sys.argv[1]))\n"
        "edge = nodes.edge({'cloud1': int(sys.argv[2])})\n"
        "time.sleep(60)\n"
    )
    paths = os.pathsep.join((str(Path(__file__).parents[1]), *filter(None, sys.path)))

    def begin() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-c", child, str(folder), str(cloud.port)],
            env={**os.environ, "PYTHONPATH": paths},
            stderr=subprocess.PIPE,
        )

    first = begin()
    stream = next_of(cloud, UP).stream
    first.send_signal(signal.SIGKILL)
    with sooner_than(TransportLimits().silent_s):  # its end is seen, not its silence
        assert next_of(cloud, DOWN).stream == stream
    second = begin()
    try:
        assert next_of(cloud, UP).node == "edge1"
    finally:
        for process in (first, second):
            process.kill()
            _, errors = process.communicate(timeout=10)
            assert errors == b""


def test_a_host_that_accepts_and_says_nothing_holds_nobody_up(nodes: Nodes) -> None:
    notes = Notes()
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        edge = nodes.edge({"cloud1": port}, trouble=notes.trouble, bounds=TransportLimits(dial_s=0.5))
        until(lambda: bool(notes.troubles))
        assert notes.troubles == [("cloud1", f"no answer from 127.0.0.1:{port} within 0.5 s")]
        with sooner_than(PATIENCE_S):
            edge.close()


def test_200_connections_of_garbage_do_not_hurt_those_who_work(nodes: Nodes) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - a fault test tells how to have it again
    dice = random.Random(seed)
    cloud = nodes.cloud(bounds=TransportLimits(handshake_s=1.0))
    edge = nodes.edge({"cloud1": cloud.port})
    stream, at_cloud = next_of(edge, UP).stream, next_of(cloud, UP).stream
    calm_s = _round_trips_s(cloud, at_cloud, edge, stream, 100)
    before_kib, num_files = _resident_kib(), _num_open_files()
    strangers: list[socket.socket] = []
    try:
        for number in range(200):
            stranger = socket.create_connection(("127.0.0.1", cloud.port), timeout=5)
            strangers.append(stranger)
            with suppress(OSError):
                stranger.sendall(_garbage(number, dice))
        stormy_s = _round_trips_s(cloud, at_cloud, edge, stream, 300)
        until(lambda: _num_open_files() <= num_files + 200 + 20)  # the server's ends are closed
        for stranger in strangers:
            with suppress(ConnectionResetError):
                while stranger.recv(65536):
                    pass
    finally:
        for stranger in strangers:
            stranger.close()
    assert len(calm_s) == 100
    assert len(stormy_s) == 300
    assert _resident_kib() - before_kib < 64 << 10
    assert edge.traffic()[stream].num_bad == 0
    late = nodes.edge({"cloud1": cloud.port}, node="edge2")
    assert next_of(late, UP).node == "cloud1"


def _garbage(number: int, dice: random.Random) -> bytes:
    """By turns: noise, nothing, the beginning of a TLS handshake, plaintext HTTP/2, HTTP/1."""
    return (
        dice.randbytes(2000),
        b"",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + dice.randbytes(100),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + dice.randbytes(500),
        b"GET / HTTP/1.1\r\n\r\n" * 20,
    )[number % 5]


def _round_trips_s(
    cloud: GrpcTransport, at_cloud: str, edge: GrpcTransport, stream: str, num: int
) -> list[float]:
    times_s: list[float] = []
    for number in range(num):
        began_s = time.perf_counter()
        assert edge.send(stream, link(b"%035d" % number))
        assert cloud.send(at_cloud, link(next_of(cloud, FRAME).body))
        assert next_of(edge, FRAME).body == b"%035d" % number
        times_s.append(time.perf_counter() - began_s)
    return times_s


def _num_open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _resident_kib() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")
