"""`/mcp` of `htfi serve`: a key reads its own tenant's run by tools, and nobody else's."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from htfi.tenancy.config import SERVICE_FILE
from mcp_client import over_http
from service_process import ServiceProcess
from tenant_service import bearer, issue, record_run, serve_tenants

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw client", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


class Served(NamedTuple):
    service: ServiceProcess
    acme: str
    beta: str

    @property
    def url(self) -> str:
        return f"{self.service.url}/mcp"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    text = '[tenants.acme]\nrun = "acme"\n[tenants.beta]\nrun = "beta"\n'
    (folder / SERVICE_FILE).write_text(text, encoding="utf-8")
    record_run(folder / "acme", ("ACME",))
    record_run(folder / "beta", ("BETA", "BETTER"))
    acme, _ = issue(folder, "acme")
    beta, _ = issue(folder, "beta")
    with serve_tenants(folder) as service:
        yield Served(service, acme, beta)


def test_each_key_asks_its_own_tenant_alone(served: Served) -> None:
    with over_http(served.url, served.acme) as acme, over_http(served.url, served.beta) as beta:
        found = [
            [one["series"] for one in client.call("data_catalogue")["series"]] for client in (acme, beta)
        ]
        said = acme.refusal("latest_forecast", series="BETA/1d")
        assert beta.call("latest_forecast", series="BETA/1d")["series"] == "BETA/1d"
    assert found == [["ACME/1d"], ["BETA/1d", "BETTER/1d"]]
    assert "there is no released forecast of 'BETA/1d'" in said
    assert "BETTER" not in said


@pytest.mark.parametrize("key", [None, "no-such-key"])
def test_without_a_key_no_tool_is_named(served: Served, key: str | None) -> None:
    answer = httpx.post(served.url, json=HELLO, headers=ACCEPT | (bearer(key) if key else {}))
    assert answer.status_code == 401


def test_no_session_is_handed_out(served: Served) -> None:
    answer = httpx.post(served.url, json=HELLO, headers=ACCEPT | bearer(served.acme))
    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers


def test_page_of_another_site_is_refused(served: Served) -> None:
    headers = ACCEPT | bearer(served.acme)
    origin = httpx.post(served.url, json=HELLO, headers=headers | {"Origin": "https://evil.example"})
    host = httpx.post(served.url, json=HELLO, headers=headers | {"Host": "evil.example"})
    assert (origin.status_code, host.status_code) == (403, 421)


def test_service_without_keys_answers_agents_too(tmp_path: Path) -> None:
    record_run(tmp_path / "run", ("ACME",))
    with ServiceProcess("--follow", str(tmp_path / "run")) as service:
        with over_http(f"{service.url}/mcp") as client:
            forecast = client.call("latest_forecast", series="ACME/1d")
        assert forecast["decision_id"] == service.client.get("/v1/forecasts/ACME/1d").json()["decision_id"]
