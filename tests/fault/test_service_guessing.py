"""Guessing keys over HTTP: ten tries by all ways together, then a wait in which a right guess is not told from a wrong
one; who has been let in goes on.
"""

import string
import time
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from htfi.tenancy.config import SERVICE_FILE
from service_process import ServiceProcess
from tenant_service import bearer, issue, record_run, serve_tenants

NUM_TRIES = 120


def altered(key: str, place: int) -> str:
    """The key with one character exchanged."""
    letters = string.ascii_letters + string.digits
    at = place % len(key)
    return key[:at] + next(one for one in letters if one != key[at]) + key[at + 1 :]


def by_header(service: ServiceProcess, key: str) -> int:
    return httpx.get(f"{service.url}/v1/series", headers=bearer(key)).status_code


def by_session(service: ServiceProcess, key: str) -> int:
    return httpx.post(f"{service.url}/v1/session", json={"key": key}).status_code


def by_cookie(service: ServiceProcess, key: str) -> int:
    return httpx.get(f"{service.url}/v1/series", headers={"Cookie": f"htfi_session={key}"}).status_code


def by_websocket(service: ServiceProcess, key: str) -> int:
    try:
        with connect(f"{service.url.replace('http', 'ws')}/v1/ws", subprotocols=["htfi", f"htfi.key.{key}"]):  # type: ignore[list-item]
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def by_agent(service: ServiceProcess, key: str) -> int:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    return httpx.post(f"{service.url}/mcp", json=body, headers=bearer(key)).status_code


@pytest.mark.slow
def test_guesses_by_all_ways_together_are_ten_and_a_right_one_is_not_told(tmp_path: Path) -> None:
    (tmp_path / SERVICE_FILE).write_text('[tenants.acme]\nrun = "acme"\n', encoding="utf-8")
    record_run(tmp_path / "acme", ("ACME",))
    known, _ = issue(tmp_path, "acme", "known")
    guessed, _ = issue(tmp_path, "acme", "guessed")
    ways = (by_header, by_session, by_websocket, by_agent)
    with serve_tenants(tmp_path) as service:
        assert by_header(service, known) == 200
        began_s = time.monotonic()
        answers = [ways[number % 4](service, altered(guessed, number)) for number in range(NUM_TRIES)]
        most = 11 + (time.monotonic() - began_s) / 6.0  # one in six seconds comes back
        told = httpx.get(f"{service.url}/v1/series", headers=bearer(guessed))
        went_on = [by_header(service, known) for _ in range(5)]
        cookies = {by_cookie(service, altered(guessed, number)) for number in range(20)}
    tried = answers.count(401)
    assert set(answers) <= {401, 429}
    assert 10 <= tried <= most
    assert (told.status_code, int(told.headers["retry-after"]) > 0) == (429, True)
    assert went_on == [200] * 5
    assert cookies <= {401, 429}
