"""Clients that break HTTP/1.1, send without end, read nothing or leave: each is refused or cut, and delays nobody."""

import contextlib
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import htfi
from htfi.apps.service.http_protocol import MAX_HEAD_BYTES
from service_process import ServiceProcess

BARS = [
    {"date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}", "symbol": "ACME", "close": 100 + (day * 7) % 11}
    for day in range(60)
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("run")
    with htfi.open_run(folder, interval="1d", models=None) as run:
        list(run.feed(BARS))
    with ServiceProcess("--follow", str(folder)) as started:
        started.wait_for(1)
        yield started


def host(service: ServiceProcess) -> bytes:
    return b"Host: 127.0.0.1:%d\r\n" % service.port


def answers(service: ServiceProcess, data: bytes, num: int = 1_000) -> tuple[list[int], bool]:
    """The statuses that a connection got until it was closed, or until they were so many; and whether it was closed."""
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.settimeout(20.0)
        got, is_closed = b"", False
        try:
            connection.sendall(data)
            while got.count(b"HTTP/1.1 ") < num:
                part = connection.recv(1 << 16)
                is_closed = not part
                if is_closed:
                    break
                got += part
        except (ConnectionResetError, BrokenPipeError):
            is_closed = True
    return [int(part[:3]) for part in got.split(b"HTTP/1.1 ")[1:]], is_closed


SMUGGLED = b"GET /v1/series HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
FRAMINGS = {
    "length and chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 2\r\nContent-Length: 0\r\n\r\n{}",
    "one length twice": b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "list of lengths": b"Content-Length: 2, 2\r\n\r\n{}",
    "length with a sign": b"Content-Length: +2\r\n\r\n{}",
    "length in hexadecimal": b"Content-Length: 0x2\r\n\r\n{}",
    "negative length": b"Content-Length: -1\r\n\r\n{}",
    "length beyond 64 bits": b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    "space before the colon": b"Content-Length : 2\r\n\r\n{}",
    "folded field": b"X-A: b\r\n c: d\r\nContent-Length: 2\r\n\r\n{}",
    "folded coding": b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
    "unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks not last": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "extension with a bare line feed": b"Transfer-Encoding: chunked\r\n\r\n2;a=b\n{}\r\n0\r\n\r\n",
    "negative chunk": b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
    "chunk in 0x": b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "chunk beyond 64 bits": b"Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n",
    "chunk without its end": b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n",
    "length in a trailer": b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nContent-Length: 50\r\n\r\n",
    "bare line feeds": b"X: y\nContent-Length: 2\r\n\r\n{}",
    "bare carriage return": b"X: a\rTransfer-Encoding: chunked\r\n\r\n",
    "zero byte": b"X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    "name with a space": b"X Y: a\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("framing", FRAMINGS)
def test_framing_that_two_servers_may_read_differently_is_refused_and_closed(
    service: ServiceProcess, framing: str
) -> None:
    head = b"POST /v1/stop HTTP/1.1\r\n" + host(service) + b"Content-Type: application/json\r\n"
    assert answers(service, head + FRAMINGS[framing] + SMUGGLED) == ([400], True)


WHOLE = {
    "vertical tab before chunked": b"POST HOST\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "space before the colon of a coding": b"POST HOST\r\nTransfer-Encoding : chunked\r\n\r\n",
    "coding in quotes": b'POST HOST\r\nTransfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "empty coding and a length": b"POST HOST\r\nTransfer-Encoding:\r\nContent-Length: 2\r\n\r\n{}",
    "both in HTTP/1.0": b"POST/1.0 HOST\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "chunk with a space behind its size": b"POST HOST\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n",
    "chunks with bare line feeds": b"POST HOST\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n",
    "target of another host": b"GET http://evil.example/v1/series HTTP/1.1\r\nHOST\r\n\r\n",
    "target of ours, Host of another": b"GET http://127.0.0.1/v1/series HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "target with a user": b"GET http://127.0.0.1@evil.example/v1/series HTTP/1.1\r\nHOST\r\n\r\n",
    "target that is an authority": b"GET evil.example:80 HTTP/1.1\r\nHOST\r\n\r\n",
    "tunnel": b"CONNECT evil.example:80 HTTP/1.1\r\nHOST\r\n\r\n",
    "beginning of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.9": b"GET /v1/series HTTP/1.9\r\nHOST\r\n\r\n",
    "tabs in the request line": b"GET\t/v1/series\tHTTP/1.1\r\nHOST\r\n\r\n",
    "space in the target": b"GET /v1/series /x HTTP/1.1\r\nHOST\r\n\r\n",
    "space before the method": b" GET /v1/series HTTP/1.1\r\nHOST\r\n\r\n",
    "field without a name": b"GET /v1/series HTTP/1.1\r\n: x\r\nHOST\r\n\r\n",
    "folded first field": b"GET /v1/series HTTP/1.1\r\n X: y\r\nHOST\r\n\r\n",
    "zero byte in the target": b"GET /v1/\0series HTTP/1.1\r\nHOST\r\n\r\n",
}


@pytest.mark.parametrize("form", WHOLE)
def test_request_that_a_proxy_may_read_otherwise_is_refused_and_closed(
    service: ServiceProcess, form: str
) -> None:
    asked = WHOLE[form].replace(b"POST/1.0 HOST", b"POST /v1/stop HTTP/1.0\r\nHOST")
    asked = asked.replace(b"POST HOST", b"POST /v1/stop HTTP/1.1\r\nHOST")
    asked = asked.replace(b"HOST\r\n", host(service) + b"Content-Type: application/json\r\n")
    assert answers(service, asked + SMUGGLED) == ([400], True)


def test_target_with_the_host_that_is_asked_is_answered(service: ServiceProcess) -> None:
    where = b"127.0.0.1:%d" % service.port
    whole = b"GET http://%s/v1/series?x=1 HTTP/1.1\r\nHost: %s\r\n\r\n" % (where, where)
    assert answers(service, whole, 1)[0] == [200]


def test_upgrade_to_http2_is_not_taken_and_hides_no_second_request(service: ServiceProcess) -> None:
    fields = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n"
    get = b"GET /v1/series HTTP/1.1\r\n" + host(service)
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.settimeout(0.5)
        connection.sendall(get + fields + b"\r\n" + get + b"\r\n")
        got = b""
        with contextlib.suppress(TimeoutError):
            while part := connection.recv(1 << 16):
                got += part
    assert got.count(b"HTTP/1.1 ") == 1
    assert got.startswith(b"HTTP/1.1 200")


def test_chunk_extensions_and_pipelined_requests_are_read_as_the_standard_says(
    service: ServiceProcess,
) -> None:
    head = b"POST /v1/stop HTTP/1.1\r\n" + host(service) + b"Content-Type: application/json\r\n"
    extended = head + b"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n"
    get = b"GET /v1/series HTTP/1.1\r\n" + host(service) + b"\r\n"
    with_body = (
        b"GET /v1/series HTTP/1.1\r\n" + host(service) + b"Content-Length: %d\r\n\r\n" % len(get) + get
    )
    assert answers(service, extended, 1)[0] == [422]
    assert answers(service, get + get, 2)[0] == [200, 200]
    another = b"GET /v1/decisions/99999 HTTP/1.1\r\n" + host(service) + b"\r\n"
    assert answers(service, with_body + another, 2)[0] == [200, 404]


def test_two_hosts_are_refused(service: ServiceProcess) -> None:
    for hosts in (b"Host: evil\r\n" + host(service), host(service) + b"Host: evil\r\n"):
        assert answers(service, b"GET /v1/series HTTP/1.1\r\n" + hosts + b"\r\n", 1)[0] == [400]


def test_head_without_end_is_cut_with_flat_memory(service: ServiceProcess) -> None:
    before = memory_kb(service)
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(b"GET /v1/series HTTP/1.1\r\n" + host(service))
        num_sent = 0
        line = b"X-A: " + b"a" * 1_000 + b"\r\n"
        try:
            while num_sent < 64 << 20:
                num_sent += connection.send(line)
        except (ConnectionResetError, BrokenPipeError):
            pass
    assert num_sent < 16 << 20  # what buffers of the machine hold
    assert MAX_HEAD_BYTES == 64 << 10
    assert memory_kb(service) - before < 32 << 10


@pytest.mark.parametrize("is_chunked", [True, False])
def test_body_of_a_gigabyte_is_cut_with_flat_memory(service: ServiceProcess, is_chunked: bool) -> None:
    before, part = memory_kb(service), b" " * (1 << 20)
    framing = (
        b"Transfer-Encoding: chunked\r\n\r\n" if is_chunked else b"Content-Length: %d\r\n\r\n" % (1 << 30)
    )
    head = b"POST /v1/forecasts HTTP/1.1\r\n" + host(service) + b"Content-Type: application/json\r\n"
    got = b""
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.settimeout(10.0)
        connection.sendall(head + framing)
        num_sent = 0
        try:
            for _ in range(1_024):
                connection.sendall(b"%x\r\n%s\r\n" % (len(part), part) if is_chunked else part)
                num_sent += len(part)
        except OSError:
            pass
        with contextlib.suppress(OSError):
            got = connection.recv(1 << 16)
    assert b"413" in got.split(b"\r\n")[0] or not got
    assert num_sent < 128 << 20
    assert memory_kb(service) - before < 96 << 10
    assert service.client.get("/v1/health").status_code == 200


def test_deep_json_and_wrong_charsets_are_one_line(service: ServiceProcess) -> None:
    kind = {"Content-Type": "application/json"}
    bodies = (
        b"[" * 1_000_000,
        b'{"items":' * 100_000,
        "{}".encode("utf-16"),
        b'{"why":"\xff\xfe"}',
        b'\xef\xbb\xbf{"why":"x"}',
        b'{"why":"\\ud800","by":"A"}',
        b'{"why":1e999999}',
        b"",
        b"null",
    )
    for path in ("/v1/stop", "/v1/news", "/v1/forecasts", "/v1/scenarios"):
        for body in bodies:
            answer = service.client.post(path, content=body, headers=kind)
            assert (answer.status_code, "\n" in answer.json()["detail"]) in ((422, False), (413, False))


def test_thousands_of_half_open_and_slow_connections_delay_no_other(service: ServiceProcess) -> None:
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    num = min(1_000, most - 200)
    get = b"GET /v1/series HTTP/1.1\r\n" + host(service)
    stream = b"GET /v1/stream?from=0 HTTP/1.1\r\n" + host(service) + b"\r\n"
    held: list[socket.socket] = []
    try:
        for place in range(num):
            connection = socket.create_connection(("127.0.0.1", service.port))
            held.append(connection)
            connection.sendall(
                (b"", get, stream)[place % 3]
            )  # nothing, half a head, a stream that is not read
        found = [service.client.get("/v1/series", timeout=5.0).status_code for _ in range(50)]
    finally:
        for connection in held:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
    assert (len(held), found) == (num, [200] * 50)


def memory_kb(service: ServiceProcess) -> int:
    """What the service's process holds now."""
    text = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])
