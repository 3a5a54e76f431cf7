"""What one tenant's flood costs the others does not grow with its connections, nor with what it sends ahead."""

import asyncio
import time
from collections import Counter
from pathlib import Path

from htfi.tenancy.config import SERVICE_FILE
from tenant_service import issue, record_run, serve_tenants

NUM_CONNECTIONS, SECONDS, PER_S = 40, 2.0, 50.0
SERVICE = f"""
[tenants.flood]
run = "flood"
quota = {{requests_per_s = {PER_S}, burst = 1}}
"""


async def ask_on(port: int, request: bytes, statuses: Counter[bytes]) -> None:
    """One connection, which asks again as soon as it is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))
        statuses[head[9:12]] += 1
    writer.close()


async def send_ahead(port: int, requests: bytes) -> bytes:
    """All that comes until the service closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(requests)
    answers = b""
    try:
        while part := await asyncio.wait_for(reader.read(1 << 16), 20.0):
            answers += part
    except ConnectionResetError:  # what it sent after the end was not read
        pass
    writer.close()
    return answers


async def flood(port: int, request: bytes) -> tuple[Counter[bytes], bytes]:
    statuses: Counter[bytes] = Counter()
    await asyncio.gather(*(ask_on(port, request, statuses) for _ in range(NUM_CONNECTIONS)))
    return statuses, await send_ahead(port, 200 * request)


def test_a_flood_is_read_little_more_often_than_its_quota_lets_through(tmp_path: Path) -> None:
    (tmp_path / SERVICE_FILE).write_text(SERVICE, encoding="utf-8")
    record_run(tmp_path / "flood", ("ACME",))
    key, _ = issue(tmp_path, "flood")
    request = f"GET /v1/series HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    with serve_tenants(tmp_path) as service:
        began = time.monotonic()
        statuses, ahead = asyncio.run(flood(service.port, request))
        most = PER_S * (time.monotonic() - began) + 1
        time.sleep(
            2.0 / PER_S
        )  # the first of what is sent ahead is let through: the others wait in the pipeline
        after_one = asyncio.run(send_ahead(service.port, 200 * request))
    assert set(statuses) == {b"200", b"429"}
    assert 10 < statuses[b"200"] <= most
    assert statuses[b"429"] <= 1.2 * most + NUM_CONNECTIONS
    assert after_one.startswith(b"HTTP/1.1 200")
    for answers in (ahead, after_one):
        assert 1 <= answers.count(b"HTTP/1.1 429") <= 2
        assert answers.count(b"HTTP/1.1 ") < 10
