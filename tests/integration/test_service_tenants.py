"""`htfi serve --service`: a caller is identified before anything is answered, and reads its own tenant's run alone."""

import csv
import io
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from htfi.tenancy.config import SERVICE_FILE
from service_process import ServiceProcess
from tenant_service import bearer, issue, record_run, serve_tenants, service_command

SERVICE = """
[tenants.acme]
run = "acme"
[tenants.beta]
run = "beta"
quota = {requests_per_s = 1000, burst = 2000}
"""


class Served(NamedTuple):
    folder: Path
    service: ServiceProcess
    acme: str
    beta: str
    acme_id: str

    def get(self, path: str, key: str | None = None, **headers: str) -> httpx.Response:
        return self.service.client.get(path, headers=(bearer(key) if key else {}) | headers)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    (folder / SERVICE_FILE).write_text(SERVICE, encoding="utf-8")
    record_run(folder / "acme", ("ACME",))
    record_run(folder / "beta", ("BETA", "BETTER"))
    acme, acme_id = issue(folder, "acme")
    beta, _ = issue(folder, "beta")
    with serve_tenants(folder) as service:
        made = Served(folder, service, acme, beta, acme_id)
        until(lambda: made.get("/v1/health", acme).json()["num_series"] == 1)
        until(lambda: made.get("/v1/health", beta).json()["num_series"] == 2)
        yield made


def until(is_so: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def problem_of(answer: httpx.Response, status: int) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    return answer.json()["detail"]


def test_each_key_reads_its_own_tenant(served: Served) -> None:
    names = [
        [one["series"] for one in served.get("/v1/series", key).json()["items"]]
        for key in (served.acme, served.beta)
    ]
    assert names == [["ACME/1d"], ["BETA/1d", "BETTER/1d"]]


@pytest.mark.parametrize(
    "path", ["/v1/series", "/v1/nothing", "/checkpoint", "/tile/0/000", "/nothing", "/v1/stream", "/v1/usage"]
)
def test_without_a_key_nothing_is_said(served: Served, path: str) -> None:
    answer = served.get(path)
    assert "Bearer KEY" in problem_of(answer, 401)
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_page_openapi_and_health_need_no_key(served: Served) -> None:
    answers = [served.get(path) for path in ("/", "/v1/openapi.json", "/v1/health")]
    assert [one.status_code for one in answers] == [200, 200, 200]
    assert answers[2].json()["num_entries"] == 0  # a probe gets no figures


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Basic YTpi", "Bearer htfi_x", "bearer " + "a" * 5_000, "Token x"]
)
def test_what_is_no_key_is_refused(served: Served, authorization: str) -> None:
    problem_of(served.get("/v1/series", Authorization=authorization), 401)


def test_key_that_was_revoked_is_refused_within_a_second(served: Served) -> None:
    key, key_id = issue(served.folder, "acme", "to end")
    until(lambda: served.get("/v1/session", key).status_code == 200)
    assert served.get("/v1/session", key).json()["name"] == "to end"
    service_command(served.folder, "keys", "revoke", "acme", key_id)
    until(lambda: served.get("/v1/session", key).status_code == 401, 5.0)
    listed = service_command(served.folder, "keys", "list", "acme")
    assert f"{key_id}  acme  revoked" in listed
    assert key not in listed


def test_key_without_the_scope_is_forbidden(served: Served) -> None:
    key, _ = issue(served.folder, "acme", "asks only", "ask")
    until(lambda: served.get("/v1/session", key).status_code == 200)
    assert "has not the scope" in problem_of(served.get("/v1/series", key), 403)


def test_usage_equals_what_was_asked_and_recorded(served: Served) -> None:
    key, key_id = issue(served.folder, "beta", "counted", "read,ask")
    until(lambda: served.get("/v1/session", key).status_code == 200)
    asked = 1
    for _ in range(5):
        asked += served.get("/v1/series", key).status_code == 200
    body = {"bars": [{"date": f"2024-01-{day:02}", "close": 100 + day} for day in range(1, 29)]}
    posted = served.service.client.post("/v1/forecasts", json=body, headers=bearer(key))
    assert posted.status_code == 200
    asked += 2  # the posted one, and that for the usage itself
    rows = served.get("/v1/usage", key).json()["items"]
    mine = next(row for row in rows if row["key"] == key_id)
    recorded = next(row for row in rows if not row["key"])
    assert (mine["requests"], mine["tokens"]) == (asked, 0)
    assert 0 < mine["cpu_us"] < 60_000_000
    entries = (served.folder / "beta" / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    assert recorded["decisions"] == len(entries) > 0
    assert {row["tenant"] for row in rows} == {"beta"}


def test_usage_is_exported_with_the_same_figures(served: Served, tmp_path: Path) -> None:
    served.get("/v1/usage", served.acme)
    shown = [
        json.loads(line) for line in service_command(served.folder, "usage", "acme", "--json").splitlines()
    ]
    service_command(served.folder, "usage", "acme", "--csv", str(tmp_path / "u.csv"))
    service_command(served.folder, "usage", "acme", "--parquet", str(tmp_path / "u.parquet"))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "u.csv").read_text(encoding="utf-8"))))
    assert [one["key"] for one in rows] == [one["key"] for one in shown]
    assert {one["tenant"] for one in rows} == {"acme"}
    pytest.importorskip("pyarrow")
    from pyarrow.parquet import read_table

    table = read_table(tmp_path / "u.parquet").to_pylist()
    assert [one["decisions"] for one in table] == [int(one["decisions"]) for one in rows]


def test_session_stands_for_the_key_until_it_is_ended(served: Served) -> None:
    with httpx.Client(base_url=served.service.url) as page:
        ours = {"Origin": served.service.url, "Sec-Fetch-Site": "same-origin"}
        began = page.post("/v1/session", json={"key": served.acme}, headers=ours)
        cookie = began.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert served.acme not in cookie
        assert page.get("/v1/session").json()["tenant"] == "acme"
        kept = dict(page.cookies)
        assert page.delete("/v1/session", headers=ours).status_code == 204
        replayed = httpx.get(f"{served.service.url}/v1/session", cookies=kept)
        assert "session has ended" in problem_of(replayed, 401)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {},
    ],
)
def test_page_of_another_site_does_nothing_with_the_session(served: Served, headers: dict[str, str]) -> None:
    with httpx.Client(base_url=served.service.url) as page:
        assert page.post("/v1/session", json={"key": served.acme}).status_code == 200
        answer = page.post("/v1/scenarios", json={"shocks": ["ACME -1%"]}, headers=headers)
        assert "session" in problem_of(answer, 403)
        if headers:
            assert page.get("/v1/series", headers=headers).status_code == 403


def test_websocket_is_identified_by_header_subprotocol_or_session(served: Served) -> None:
    url = f"ws://127.0.0.1:{served.service.port}/v1/ws?from=0"
    with connect(url, close_timeout=0.1, additional_headers=bearer(served.beta)) as socket:
        assert "BET" in str(socket.recv(10.0))
    offered = [Subprotocol("htfi"), Subprotocol(f"htfi.key.{served.acme}")]
    with connect(url, close_timeout=0.1, subprotocols=offered) as socket:
        assert socket.subprotocol == "htfi"
        assert "ACME" in str(socket.recv(10.0))
    with httpx.Client(base_url=served.service.url) as page:
        page.post("/v1/session", json={"key": served.acme})
        cookie = {"Cookie": f"htfi_session={page.cookies['htfi_session']}"}
    with connect(
        url, close_timeout=0.1, additional_headers=cookie, origin=Origin(served.service.url)
    ) as socket:
        assert "ACME" in str(socket.recv(10.0))
    for headers in (None, cookie):  # nobody, and a session from nowhere
        with (
            pytest.raises(InvalidStatus) as refused,
            connect(url, close_timeout=0.1, additional_headers=headers),
        ):
            pass
        assert refused.value.response.status_code == (401 if headers is None else 403)


def test_flood_over_the_rate_is_refused_with_when_to_ask_again(served: Served) -> None:
    key, _ = issue(
        served.folder, "acme", "floods", "read", "--quota", "requests_per_s=2", "--quota", "burst=3"
    )
    until(lambda: served.get("/v1/session", key).status_code == 200)
    answers = [served.get("/v1/series", key) for _ in range(6)]
    refused = [one for one in answers if one.status_code == 429]
    assert 3 <= len(refused) < 6
    assert "over the quota" in problem_of(refused[0], 429)
    assert int(refused[0].headers["retry-after"]) == 1
    assert "ratelimit" in answers[0].headers
    assert served.get("/v1/series", served.beta).status_code == 200
