"""`htfi serve --service`: a caller is identified before anything is answered, and reads its own tenant's run alone."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from htfi.tenancy.config import SERVICE_FILE
from service_process import ServiceProcess
from tenant_service import bearer, issue, record_run, serve_tenants, service_command, until

SECRET_PRICE = 987_654.0  # no other run has a figure that begins so
SECRET = re.compile(rb"(?<![0-9.])9876[0-9]{2}|BETTER")
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
    record_run(folder / "beta", ("BETA", "BETTER"), SECRET_PRICE)
    acme, acme_id = issue(folder, "acme")
    beta, _ = issue(folder, "beta")
    with serve_tenants(folder) as service:
        made = Served(folder, service, acme, beta, acme_id)
        until(lambda: made.get("/v1/health", acme).json()["num_series"] == 1)
        until(lambda: made.get("/v1/health", beta).json()["num_series"] == 2)
        yield made


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


def operations(served: Served) -> list[tuple[str, str, dict[str, Any]]]:
    """Every method and path that the service says it has, with what names beta's things, and its bodies."""
    said = served.get("/v1/openapi.json").json()
    found: list[tuple[str, str, dict[str, Any]]] = []
    for path, methods in said["paths"].items():
        for method, operation in methods.items():
            given: dict[str, Any] = {}
            filled = path
            for one in operation.get("parameters", []):
                value = example_of(one["schema"], said, one["name"])
                if one["in"] == "path":
                    filled = re.sub(rf"\{{{one['name']}(:path)?\}}", str(value), filled)
                elif one["in"] == "query" and one["name"] not in ("from", "to", "size", "before", "after"):
                    given.setdefault("params", {})[one["name"]] = value
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                given["json"] = example_of(content["application/json"]["schema"], said, "")
            found.append((method.upper(), filled, given))
    return found


def example_of(schema: dict[str, Any], said: dict[str, Any], name: str) -> Any:
    """A value of a schema that names beta's things where it names anything."""
    if "$ref" in schema:
        return example_of(said["components"]["schemas"][schema["$ref"].rpartition("/")[2]], said, name)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return example_of(schema[choice][0], said, name)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {key: example_of(one, said, key) for key, one in schema.get("properties", {}).items()}
    if kind == "array":
        return [example_of(schema.get("items", {}), said, name)]
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    if kind == "boolean":
        return True
    return {"level": "entries", "path": "000.p/4", "series": "BETA/1d"}.get(name, "BETA")


def asked(
    served: Served, operation: tuple[str, str, dict[str, Any]], headers: dict[str, str]
) -> tuple[int, bytes]:
    """The status and the first of the answer, also of one that does not end."""
    method, path, given = operation
    client = served.service.client
    with client.stream(
        method, path, headers=headers, timeout=httpx.Timeout(30.0, read=3.0), **given
    ) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return answer.status_code, b""  # it begins with the next decision, and there is none
        return answer.status_code, answer.read()


def test_tenant_gets_nothing_of_another_by_any_path(served: Served) -> None:
    mine = asked(served, ("GET", "/v1/decisions", {"params": {"limit": 5}}), bearer(served.beta))
    assert SECRET.search(mine[1])  # beta itself sees it
    known = operations(served)
    answers = {(one[0], one[1]): asked(served, one, bearer(served.acme)) for one in known}
    assert len(answers) >= 18
    assert not [where for where, (_, body) in answers.items() if SECRET.search(body)]
    assert not [where for where, (status, _) in answers.items() if status >= 500]
    assert answers["GET", "/v1/forecasts/BETA/1d"][0] == 404


def test_every_path_but_those_of_a_page_is_closed_without_a_key(served: Served) -> None:
    opened = [one[:2] for one in operations(served) if asked(served, one, {})[0] not in (401, 429)]
    assert sorted(opened) == [("GET", "/v1/health")]


@pytest.mark.slow
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
    # each by a connection of its own: one that was refused is read again only when the rate lets a request through
    answers = [served.get("/v1/series", key, Connection="close") for _ in range(6)]
    refused = [one for one in answers if one.status_code == 429]
    assert 3 <= len(refused) < 6
    assert "over the quota" in problem_of(refused[0], 429)
    assert int(refused[0].headers["retry-after"]) == 1
    assert "ratelimit" in answers[0].headers
    assert served.get("/v1/series", served.beta).status_code == 200


def test_refused_bodies_are_passed_over_and_the_connection_goes_on(served: Served) -> None:
    """Bodies of refused requests are passed over, and what comes after on the connection is answered."""
    key, key_id = issue(served.folder, "acme", "asks on", "read,ask", "--quota", "requests_per_day=1")
    until(lambda: served.get("/v1/session", key).status_code in (200, 429))
    url = f"http://127.0.0.1:{served.service.port}"
    with httpx.Client(base_url=url, headers=bearer(key), limits=httpx.Limits(max_connections=1)) as client:
        answers = [client.post("/v1/forecasts", content=b"{" * 50_000) for _ in range(3)]
        answers += [client.get("/v1/series"), client.head("/v1/series")]
    assert [one.status_code for one in answers] == [429] * 5
    assert answers[4].content == b""
    assert {"date", "retry-after"} <= set(answers[0].headers)
    rows = served.get("/v1/usage", served.acme).json()["items"]
    assert sum(row["refused"] for row in rows if row["key"] == key_id) >= 5


def test_answer_under_an_idempotency_key_is_not_for_another_key_of_the_same_name(served: Served) -> None:
    """Of a caller that was replaced by one of its name, such as a key that was revoked and given anew."""
    callers = [issue(served.folder, "acme", "nightly", "act")[0] for _ in range(2)]
    body = {"scope": "series:ACME", "why": "drill"}
    answers: list[httpx.Response] = []
    for key in (*callers, callers[0]):
        until(lambda key=key: served.get("/v1/session", key).status_code == 200)
        headers = bearer(key) | {"Idempotency-Key": "night-1"}
        answers.append(served.service.client.post("/v1/stop", json=body, headers=headers))
    assert [one.status_code for one in answers] == [202] * 3
    assert ["idempotency-replayed" in one.headers for one in answers] == [False, False, True]


def test_stream_and_websocket_end_with_their_key(served: Served) -> None:
    key, key_id = issue(served.folder, "acme", "streams")
    url = f"ws://127.0.0.1:{served.service.port}/v1/ws"
    with (
        connect(url, additional_headers=bearer(key)) as socket,
        served.service.client.stream("GET", "/v1/stream", headers=bearer(key)) as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("retry")
        service_command(served.folder, "keys", "revoke", "acme", key_id)
        assert [line for line in lines if line] == []  # it ends, though no decision comes
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv(10.0)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
