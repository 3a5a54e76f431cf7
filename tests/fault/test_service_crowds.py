"""Ten thousand connections, peers that vanish, pages of other sites, and addresses in what users send."""

import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import htfi
from page_run import daily_bars
from service_process import ServiceProcess
from web_server import serve

GONE_SOON = (
    "import htfi.wiring.service.listening as listening\n"
    "listening.SILENT_MS = 500\n"
    "from htfi.apps.cli.main import main\n"
    "main()\n"
)
NUM_CONNECTIONS = 10_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("crowds") / "run"
    with htfi.open_run(found, interval="1d", models=None) as run:
        list(run.feed(daily_bars(0, 60)))
    return found


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess("--follow", str(folder)) as started:
        started.wait_for(1)
        yield started


def until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def head_of(service: ServiceProcess, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\n".encode()


def open_streams(service: ServiceProcess) -> float:
    """How many streams the service counts."""
    found = [
        float(line.rpartition(" ")[2])
        for line in service.client.get("/metrics").text.splitlines()
        if line.startswith('htfi_http_streams{kind="sse"}')
    ]
    return sum(found)


def memory_kb(service: ServiceProcess) -> int:
    text = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


@pytest.mark.slow
def test_ten_thousand_connections_are_held_and_each_stream_gets_the_next_decision(tmp_path: Path) -> None:
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert most >= NUM_CONNECTIONS + 500, f"ulimit -Hn is {most}: this test needs {NUM_CONNECTIONS + 500:,}"
    held: list[socket.socket] = []
    with (
        htfi.open_run(tmp_path / "run", interval="1d", models=None) as run,
        ServiceProcess("--follow", str(tmp_path / "run")) as service,
    ):
        list(run.feed(daily_bars(0, 60)))
        service.wait_for(run.num_decisions)
        before = memory_kb(service)
        half, stream = head_of(service, "/v1/series"), head_of(service, "/v1/stream") + b"\r\n"
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        try:
            for place in range(NUM_CONNECTIONS):
                connection = socket.create_connection(("127.0.0.1", service.port))
                held.append(connection)
                connection.sendall((b"", half, stream)[place % 3])
            streams = held[2::3]
            until(lambda: open_streams(service) == len(streams))
            answers = [service.client.get("/v1/series").status_code for _ in range(100)]
            grown = memory_kb(service) - before
            newest = run.num_decisions
            list(run.feed(daily_bars(60, 62)))
            wanted = b"id: %d\n" % newest
            got = [wanted in read_until(one, wanted) for one in streams]
        finally:
            for connection in held:
                connection.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
        until(lambda: open_streams(service) == 0)
        assert service.client.get("/v1/health").status_code == 200
    assert (len(got), all(got), set(answers)) == (len(streams), True, {200})
    assert grown < 64 * NUM_CONNECTIONS


def read_until(connection: socket.socket, wanted: bytes) -> bytes:
    connection.settimeout(30.0)
    read = b""
    while wanted not in read and (part := connection.recv(1 << 16)):
        read += part
    return read


def test_stream_of_a_peer_that_takes_nothing_any_more_is_given_up(
    folder: Path, service: ServiceProcess
) -> None:
    with (
        ServiceProcess("--follow", str(folder), program=(sys.executable, "-c", GONE_SOON)) as impatient,
        socket.socket() as gone,
    ):
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        gone.connect(("127.0.0.1", impatient.port))
        gone.sendall(head_of(impatient, "/v1/stream?from=0") + b"\r\n")
        until(lambda: open_streams(impatient) == 1)
        reader = impatient.events(0, 3)  # one that takes what comes is served meanwhile
        until(lambda: open_streams(impatient) == 0)
    assert len(reader) == 3


def unsafe(service: ServiceProcess) -> list[tuple[str, str]]:
    """Every method and path that may change something."""
    paths = service.client.get("/v1/openapi.json").json()["paths"]
    return [
        (method.upper(), path.replace("{", "").replace("}", "").replace(":path", ""))
        for path, methods in paths.items()
        for method in methods
        if method not in ("get", "head")
    ]


def left_by(folder: Path) -> dict[str, bytes]:
    """The files of a run's folder that acts are written to."""
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in (".db", ".db-wal", ".db-shm", ".sqlite", ".lock")
    }


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_form_of_another_site_changes_nothing_by_any_path(
    folder: Path, service: ServiceProcess, kind: str
) -> None:
    """What a page may send without asking: any origin, a body of a form's type, whose text is JSON."""
    before, asked = left_by(folder), [one for one in unsafe(service) if one[0] == "POST"]
    body = '{"by": "Ann", "why": "x", "scope": "firm", "items": [{"headline": "x"}], "seen": "12345678"}'
    headers = {"Content-Type": kind, "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    answers = {
        (method, path): service.client.request(method, path, content=body, headers=headers)
        for method, path in asked
    }
    assert len(answers) > 15
    assert [where for where, one in answers.items() if not 400 <= one.status_code < 500] == []
    assert [where for where, one in answers.items() if "access-control-allow-origin" in one.headers] == []
    assert left_by(folder) == before


def test_script_of_another_site_is_let_in_by_no_preflight(service: ServiceProcess) -> None:
    headers = {
        "Origin": "https://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    answers = [service.client.options(path, headers=headers) for _, path in unsafe(service)]
    assert len(answers) > 15
    assert [one.status_code for one in answers if one.status_code < 400] == []
    assert [one.url for one in answers if any("access-control" in name for name in one.headers)] == []


def test_no_address_that_a_user_sends_is_asked(folder: Path, service: ServiceProcess) -> None:
    bars: list[dict[str, Any]] = [bar for bar in daily_bars(0, 60) if bar["symbol"] == "AAA"]
    with serve() as site:
        url = f"{site.url}/secret"
        news = {"headline": f"AAA reports at {url}", "url": url, "publisher": url, "symbols": ["AAA"]}
        picture = {"type": "image_url", "image_url": {"url": url}}
        chat = {"model": url, "messages": [{"role": "user", "content": [picture]}]}
        bodies: dict[str, list[dict[str, Any]]] = {
            "/v1/news": [{"items": [news]}],
            "/v1/forecasts": [
                {"bars": bars, "news": [news | {"ts": "2010-03-01T12:00:00Z"}]},
                {"bars": url},
                {"bars": [{"date": url, "close": url}]},
            ],
            "/v1/scenarios": [{"headlines": [f"AAA: {url}"], "draws": 50}, {"stresses": [url]}],
            "/v1/chat/completions": [chat, chat | {"model": "htfi"}],
            "/v1/embeddings": [{"model": url, "input": url}],
            "/v1/session": [{"key": url}],
        }
        answers: list[httpx.Response] = []
        for path, asked in bodies.items():
            answers += [service.client.post(path, json=one) for one in asked]
        for path in (f"/v1/decisions?symbol={url}", f"/v1/forecasts/{url}", f"/v1/news/{url}"):
            answers.append(service.client.get(path, headers={"Referer": url, "Forwarded": f"host={url}"}))
        assert len(answers) == 13
        assert [one.request.url for one in answers if one.status_code >= 500] == []
        assert answers[0].status_code == 202
        assert site.asked == []
