"""`htfi mcp` under faults: bad messages, clients that leave, a run that is killed or not there, strangers over HTTP."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

import forked
import htfi
from mcp_client import McpHttpProcess, over_http, over_pipes

BARS = [
    {"date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}", "symbol": "ACME", "close": 100 + (day * 7) % 11}
    for day in range(60)
]
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
KEYS = {name: secrets.token_urlsafe(32) for name in ("reader", "asker", "scopeless")}
SCOPES = {"reader": ["read"], "asker": ["read", "ask"], "scopeless": ["ask"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("run")
    with htfi.open_run(found, interval="1d", models=None) as run:
        list(run.feed(BARS))
    return found


@pytest.fixture(scope="module")
def keys_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    file.write_text(
        "".join(
            f'[[key]]\nname = "{name}"\nsha256 = "{sha256(key.encode()).hexdigest()}"\n'
            f"scopes = {json.dumps(SCOPES[name])}\n"
            for name, key in KEYS.items()
        )
    )
    return file


@pytest.fixture(scope="module")
def server(folder: Path, keys_file: Path) -> Iterator[McpHttpProcess]:
    arguments = ("--keys", str(keys_file), "--issuer", "https://login.example.com")
    with McpHttpProcess(folder, *arguments) as started:
        yield started


@pytest.fixture(scope="module")
def local(folder: Path) -> Iterator[McpHttpProcess]:
    with McpHttpProcess(folder) as started:
        yield started


def message(method: str, params: dict[str, Any] | None = None, number: int | None = 1) -> dict[str, Any]:
    found: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    return found if number is None else {**found, "id": number}


HELLO = message(
    "initialize",
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw client", "version": "1"},
    },
)


class RawPipes:
    """A server's process asked line by line, as no library would."""

    def __init__(self, folder: Path) -> None:
        self.process = forked.Popen(
            [*forked.HTFI, "mcp", "--follow", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        """The answer of this id; others that come before are passed over."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found: dict[str, Any] = json.loads(line)
            if found.get("id") == number:
                return found
        raise AssertionError(f"the server ended without an answer to {number}")

    def __enter__(self) -> "RawPipes":
        self.send(json.dumps(HELLO).encode())
        self.answer(1)
        self.send(json.dumps(message("notifications/initialized", number=None)).encode())
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


BAD_LINES = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b'{"jsonrpc":"1.0","id":2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"2.0","id":2}',
    b"\xff\xfe\x00",
    b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":[]}',
    b"[" * 100_000,
    b'{"a":' * 20_000,
)


def test_bad_messages_end_nothing(folder: Path) -> None:
    with RawPipes(folder) as pipes:
        for number, line in enumerate(BAD_LINES, 100):
            pipes.send(line)
            pipes.send(json.dumps(message("ping", number=number)).encode())
            assert pipes.answer(number)["result"] == {}
        pipes.send(
            json.dumps(message("tools/call", {"name": "verify_ledger", "arguments": {}}, 999)).encode()
        )
        assert pipes.answer(999)["result"]["structuredContent"]["holds"]


def test_arguments_of_a_megabyte_are_refused_in_one_line(folder: Path) -> None:
    with RawPipes(folder) as pipes:
        call = message("tools/call", {"name": "latest_forecast", "arguments": {"series": "x" * 1_000_000}}, 7)
        pipes.send(json.dumps(call).encode())
        result = pipes.answer(7)["result"]
    assert result["isError"]
    assert (
        result["content"][0]["text"] == "latest_forecast: series: String should have at most 200 characters"
    )


def test_client_that_leaves_during_a_call_ends_the_server(folder: Path) -> None:
    with RawPipes(folder) as pipes:
        call = message("tools/call", {"name": "verify_ledger", "arguments": {"recompute": True}}, 7)
        pipes.send(json.dumps(call).encode())
        assert pipes.process.stdin is not None
        pipes.process.stdin.close()
        assert pipes.process.wait(30.0) == 0
        assert pipes.process.stderr is not None
        assert b"Traceback" not in pipes.process.stderr.read()


def test_folder_without_a_run_says_so(tmp_path: Path) -> None:
    with over_pipes("--follow", str(tmp_path)) as client:
        assert client.call("data_catalogue")["num_entries"] == 0
        assert "the run's series are none yet" in client.refusal("latest_forecast", series="ACME/1d")
        assert client.refusal("verify_ledger")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--follow", "nowhere"), "does not exist"),
        (("--keys", __file__), "add --listen"),
        (("--listen", "0.0.0.0:0"), "without keys"),
        (("--listen", "here"), "write HOST:PORT"),
        (("--listen", "127.0.0.1:0", "--keys", __file__), "write [[key]] tables"),
        (("--listen", "127.0.0.1:0", "--public-url", "ftp://x"), "write a URL"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(
    folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    follow = () if "--follow" in arguments else ("--follow", str(folder))
    command = [*forked.HTFI, "mcp", *follow, *arguments]
    found = forked.run(
        command, input="", capture_output=True, text=True, timeout=60, env=os.environ | {"COLUMNS": "200"}
    )
    assert found.returncode != 0
    assert said in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.slow
def test_run_that_is_killed_stays_readable_and_goes_on(tmp_path: Path) -> None:
    script = (
        "import sys, htfi\n"
        "with htfi.open_run(sys.argv[1], interval='1d', models=None) as run:\n"
        "    for line in sys.stdin:\n"
        "        day = int(line)\n"
        "        date = f'2024-{1 + day // 28:02}-{1 + day % 28:02}'\n"
        "        row = {'date': date, 'symbol': 'ACME', 'close': 100 + day % 9}\n"
        "        for one in run.feed([row]): pass\n"
        "        print(day, flush=True)\n"
    )

    def start() -> subprocess.Popen[str]:
        return forked.Popen(
            [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )  # fmt: skip

    def push(process: subprocess.Popen[str], days: range) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        for day in days:
            process.stdin.write(f"{day}\n")
            process.stdin.flush()
            process.stdout.readline()

    process = start()
    push(process, range(40))
    with over_pipes("--follow", str(tmp_path)) as client:
        first = client.call("data_catalogue")
        assert first["is_running"]
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed = client.call("data_catalogue")
        assert not killed["is_running"]
        assert killed["num_entries"] >= first["num_entries"] > 0
        assert client.call("verify_ledger")["num_entries"] == killed["num_entries"]
        process = start()
        push(process, range(45))  # a run that was killed gets its input again
        process.communicate()
        end = time.monotonic() + 30.0
        while (after := client.call("data_catalogue")["num_entries"]) <= killed["num_entries"]:
            assert time.monotonic() < end
        assert client.call("latest_forecast", series="ACME/1d")["index"] == after - 1


def test_http_without_a_key_is_refused_and_led_to_who_gives_tokens(server: McpHttpProcess) -> None:
    bare = httpx.post(server.url, json=HELLO, headers=HEADERS)
    wrong = httpx.post(server.url, json=HELLO, headers=HEADERS | {"Authorization": "Bearer nothing"})
    long = httpx.post(server.url, json=HELLO, headers=HEADERS | {"Authorization": f"Bearer {'x' * 20_000}"})
    scopeless = httpx.post(
        server.url, json=HELLO, headers=HEADERS | {"Authorization": f"Bearer {KEYS['scopeless']}"}
    )
    assert (bare.status_code, wrong.status_code, long.status_code, scopeless.status_code) == (
        401,
        401,
        401,
        403,
    )
    where = bare.headers["WWW-Authenticate"].partition('resource_metadata="')[2].partition('"')[0]
    metadata = httpx.get(where).json()
    assert metadata["resource"] == server.url
    assert metadata["authorization_servers"] == ["https://login.example.com"]


def test_scope_of_a_key_bounds_its_tools(server: McpHttpProcess) -> None:
    with over_http(server.url, KEYS["reader"]) as reader, over_http(server.url, KEYS["asker"]) as asker:
        forecast = reader.call("latest_forecast", series="ACME/1d")
        said = reader.refusal("what_if", shocks=["ACME -5%"])
        assert "reader has not the scope 'ask'" in said
        assert asker.call("latest_forecast", series="ACME/1d") == forecast
        assert asker.call("what_if", shocks=["ACME -5%"])["scenarios"]


def test_session_of_one_key_is_not_another_ones(server: McpHttpProcess) -> None:
    def as_key(name: str, body: dict[str, Any], session: str = "") -> httpx.Response:
        headers = HEADERS | {"Authorization": f"Bearer {KEYS[name]}", "MCP-Protocol-Version": "2025-11-25"}
        return httpx.post(
            server.url, json=body, headers=headers | ({"Mcp-Session-Id": session} if session else {})
        )

    session = as_key("asker", HELLO).headers["mcp-session-id"]
    own = as_key("asker", message("tools/list", number=2), session)
    others = as_key("reader", message("tools/list", number=2), session)
    assert own.status_code == 200
    assert others.status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 400),
        ({"MCP-Protocol-Version": "1999-01-01"}, 400),
    ],
)
def test_stranger_in_a_browser_gets_nothing(
    local: McpHttpProcess, headers: dict[str, str], status: int
) -> None:
    body = message("tools/list") if "MCP-Protocol-Version" in headers else HELLO
    found = httpx.post(local.url, content=json.dumps(body), headers=HEADERS | headers)
    assert found.status_code == status


def test_body_that_is_too_large_is_refused(local: McpHttpProcess) -> None:
    found = httpx.post(local.url, content=b" " * (5 << 20), headers=HEADERS)
    assert found.status_code == 413


@pytest.mark.parametrize("content", [b"{", b"null", b"[" * 50_000, b"\xff\xfe", b'{"jsonrpc":"2.0","id":1}'])
def test_bad_message_over_http_is_a_client_error(local: McpHttpProcess, content: bytes) -> None:
    found = httpx.post(local.url, content=content, headers=HEADERS)
    assert 400 <= found.status_code < 500
    assert "Traceback" not in found.text
    assert httpx.post(local.url, json=HELLO, headers=HEADERS).status_code == 200


def test_client_that_leaves_during_an_http_call_holds_up_no_other(local: McpHttpProcess) -> None:
    with over_http(local.url) as client:
        session = httpx.post(local.url, json=HELLO, headers=HEADERS).headers["mcp-session-id"]
        headers = HEADERS | {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        call = message("tools/call", {"name": "verify_ledger", "arguments": {"recompute": True}}, 5)
        for _ in range(5):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(local.url, json=call, headers=headers, timeout=httpx.Timeout(5.0, read=0.005))
        assert client.call("verify_ledger")["holds"]
