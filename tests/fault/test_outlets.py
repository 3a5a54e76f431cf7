"""Readers of released decisions hold nobody up, and get each line once, in order, whatever happens."""

import contextlib
import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import forked
from htfi.adapters.stores.line_server import LineServer
from htfi.adapters.stores.released_lines import FollowingReader, ReleasedLines
from htfi.domain.errors import DependencyUnavailable, InvalidInput

RUN = ("run",)
EDGE = (
    "edge",
    "--insecure-loopback",
    "--cloud",
    "cloud1=127.0.0.1:9",
)  # nothing listens there: it works alone
COMMANDS = pytest.mark.parametrize(
    "command", [RUN, pytest.param(EDGE, marks=pytest.mark.slow)], ids=["run", "edge"]
)
NUM_DAYS = 400


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More decisions than a pipe holds."""
    file = tmp_path_factory.mktemp("prices") / "prices.csv"
    rows = ["date,symbol,close"]
    for day in range(NUM_DAYS):
        date = time.strftime("%Y-%m-%d", time.gmtime(86_400 * (13_000 + day)))
        rows.append(f"{date},A,{100 + (day * 7919 % 101) / 50:.2f}")
    file.write_text("\n".join(rows), encoding="utf-8")
    return file


@pytest.fixture
def closing() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def start(
    closing: contextlib.ExitStack, command: Sequence[str], *words: object, **streams: int
) -> subprocess.Popen[bytes]:
    line = [*forked.HTFI, *command, *map(str, words), "--plain", "--no-report"]
    run = closing.enter_context(forked.Popen(line, stderr=subprocess.PIPE, **streams))  # type: ignore[call-overload]
    closing.callback(run.kill)
    return run


def indices(lines: Sequence[bytes]) -> list[int]:
    return [json.loads(line)["index"] for line in lines]


def journal(folder: Path) -> list[bytes]:
    return (folder / "decisions.jsonl").read_bytes().splitlines(keepends=True)


def wait_for(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    until_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until_s, "it did not come in time"
        time.sleep(0.02)


def follow(address: str | int, first: int) -> socket.socket:
    """A client that has asked for lines."""
    if isinstance(address, int):
        client = socket.create_connection(("127.0.0.1", address))
    else:
        client = socket.socket(socket.AF_UNIX)
        client.connect(address)
    client.settimeout(30.0)
    client.sendall(b'{"from": %d}\n' % first)
    return client


def all_of(client: socket.socket) -> list[bytes]:
    with client, client.makefile("rb") as file:
        return list(file)


@COMMANDS
def test_a_reader_that_does_not_read_holds_no_run_and_gets_every_line(
    closing: contextlib.ExitStack, command: Sequence[str], prices: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    run = start(closing, command, prices, "--out", folder, "--stdout", stdout=subprocess.PIPE)
    assert run.stdout is not None
    wait_for(lambda: (folder / "decisions.parquet").exists())  # made when the last decision is recorded
    lines = journal(folder)
    assert sum(map(len, lines)) > 2 * 65_536, "it must not fit into the pipe"
    assert run.poll() is None
    assert run.stdout.readlines() == lines
    assert run.wait(20.0) == 0


@COMMANDS
def test_a_stopped_run_does_not_wait_for_a_reader_that_does_not_read(
    closing: contextlib.ExitStack, command: Sequence[str], prices: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    run = start(closing, command, prices, "--out", folder, "--stdout", stdout=subprocess.PIPE)
    assert run.stderr is not None
    for line in run.stderr:
        if b"decisions.parquet" in line:  # the end of the summary: now it waits for its reader
            break
    time.sleep(0.5)
    run.send_signal(signal.SIGTERM)
    run.wait(20.0)
    assert b"decisions were not read from standard output" in run.stderr.read()
    assert len(journal(folder)) == NUM_DAYS - 20


@COMMANDS
def test_clients_get_every_line_from_their_index_on_across_a_kill(
    closing: contextlib.ExitStack, command: Sequence[str], prices: Path, tmp_path: Path
) -> None:
    folder, address = tmp_path / "run", str(tmp_path / "lines.sock")
    words = (prices, "--out", folder, "--listen", f"unix:{address}", "--pace", 1e7)
    run = start(closing, command, *words, stdout=subprocess.DEVNULL)
    wait_for(lambda: _is_listening(address))
    sleeper = follow(address, 0)  # never reads
    with follow(address, 0) as client, client.makefile("rb") as file:
        got = [file.readline() for _ in range(20)]
    run.send_signal(signal.SIGKILL)
    run.wait(20.0)
    sleeper.close()
    assert Path(address).is_socket(), "a killed run leaves its socket, which the next one replaces"
    again = start(closing, command, *words[:-2], stdout=subprocess.DEVNULL)
    wait_for(lambda: _is_listening(address))
    clients = [follow(address, 0), follow(address, len(got))]
    with ThreadPoolExecutor() as readers:
        whole, rest = readers.map(all_of, clients)
    assert again.wait(30.0) == 0
    assert whole == journal(folder)
    assert indices(whole) == list(range(NUM_DAYS - 20))
    assert got + rest == whole
    assert not Path(address).exists()


def _is_listening(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(address) == 0


@pytest.fixture
def lines(tmp_path: Path) -> ReleasedLines:
    file = tmp_path / "lines"
    file.write_bytes(b"".join(b'{"index":%d}\n' % k for k in range(10)))
    return ReleasedLines(file, file.stat().st_size)


def append(lines: ReleasedLines, line: bytes) -> None:
    with lines.path.open("ab") as file:
        file.write(line)
    lines.grow(len(line))


def test_a_client_waits_for_an_index_to_come_and_leaves_when_the_run_ends(lines: ReleasedLines) -> None:
    server = LineServer("127.0.0.1:0", lines)
    port = server.port
    client = follow(port, 11)
    append(lines, b'{"index":10}\n{"index":')
    append(lines, b"11}\n")
    with client, client.makefile("rb") as file:
        assert file.readline() == b'{"index":11}\n'
        lines.end()
        assert file.readline() == b""
    server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1.0)


def test_a_client_that_leaves_and_comes_back_gets_the_rest(lines: ReleasedLines) -> None:
    server = LineServer("127.0.0.1:0", lines)
    with follow(server.port, 0) as client, client.makefile("rb") as file:
        got = [file.readline() for _ in range(4)]
    append(lines, b'{"index":10}\n')
    back = follow(server.port, len(got))
    lines.end()
    assert indices(got + all_of(back)) == list(range(11))
    server.close()


def test_clients_of_an_edge_that_does_not_lead_wait_until_it_does(lines: ReleasedLines) -> None:
    leads = threading.Event()
    server = LineServer("127.0.0.1:0", lines, leads.is_set)
    with follow(server.port, 8) as client:
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1)
        leads.set()
        client.settimeout(10.0)
        lines.end()
        assert indices(all_of(client)) == [8, 9]
    server.close()


def test_clients_of_an_edge_that_never_led_get_nothing_and_are_let_go(lines: ReleasedLines) -> None:
    asked = threading.Event()
    server = LineServer("127.0.0.1:0", lines, lambda: bool(asked.set()))
    client = follow(server.port, 0)
    assert asked.wait(10.0)
    lines.end()
    server.close()
    assert all_of(client) == []


@pytest.mark.parametrize(
    "asked", [b"GET / HTTP/1.1\r\n\r\n", b'{"from": -1}\n', b"{}\n", b"\xff\n", b"x" * 5000]
)
def test_what_is_no_request_gets_one_line(lines: ReleasedLines, asked: bytes) -> None:
    server = LineServer("127.0.0.1:0", lines)
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(10.0)
        client.sendall(asked)
        with contextlib.suppress(ConnectionResetError):  # it had sent more than was read
            assert b'send one line like {\\"from\\": 0}' in client.recv(4096)
    lines.end()
    server.close()


@pytest.mark.parametrize("address", ["0.0.0.0:80", "example.org:80", "127.0.0.1", "127.0.0.1:70000", "unix:"])
def test_decisions_are_served_to_no_other_machine(lines: ReleasedLines, address: str) -> None:
    with pytest.raises(InvalidInput, match="unix:"):
        LineServer(address, lines)


def test_a_socket_is_its_owners_alone_and_taken_from_nobody(lines: ReleasedLines, tmp_path: Path) -> None:
    path = tmp_path / "s"
    server = LineServer(f"unix:{path}", lines)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(DependencyUnavailable, match="another process does"):
        LineServer(f"unix:{path}", lines)
    (tmp_path / "file").write_text("not a socket")
    with pytest.raises(DependencyUnavailable, match="cannot listen"):
        LineServer(f"unix:{tmp_path / 'file'}", lines)
    lines.end()
    server.close()
    assert (tmp_path / "file").read_text() == "not a socket"


def test_a_stream_that_cannot_be_written_is_told_of_in_a_line(lines: ReleasedLines) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        reader = FollowingReader(lines, 0, full)
        with pytest.raises(DependencyUnavailable, match="No space left on device"):
            reader.finish(10.0)
