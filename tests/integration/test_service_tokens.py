"""Tokens of an identity provider over HTTP: its keys are read from where service.toml says, and from nowhere else."""

import json
from collections.abc import Iterator

import pytest

from htfi.tenancy.config import SERVICE_FILE
from service_process import ServiceProcess
from signed_tokens import AUDIENCE, ISSUER, TokenIssuer
from tenant_service import bearer, record_run, serve_tenants
from web_server import Reply, Site, serve

ISSUING = TokenIssuer()


@pytest.fixture(scope="module")
def provider() -> Iterator[Site]:
    with serve() as site:
        site.pages["/jwks"] = Reply(json.dumps(ISSUING.jwks()).encode())
        site.pages["/evil"] = Reply(json.dumps(TokenIssuer().jwks()).encode())
        yield site


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, provider: Site) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("service")
    issuer = f'[[issuers]]\nissuer = "{ISSUER}"\naudience = "{AUDIENCE}"\nkeys = "{provider.url}/jwks"\n'
    (folder / SERVICE_FILE).write_text(f'{issuer}[tenants.acme]\nrun = "acme"\n', encoding="utf-8")
    record_run(folder / "acme", ("ACME",))
    with serve_tenants(folder) as started:
        yield started


def test_token_lets_its_bearer_in_with_its_scopes(service: ServiceProcess) -> None:
    token = ISSUING.token(scope="read")
    answer = service.client.get("/v1/session", headers=bearer(token)).json()
    assert answer == {"tenant": "acme", "name": "ann", "scopes": ["read"]}
    posted = service.client.post("/v1/forecasts", json={"bars": []}, headers=bearer(token))
    assert posted.status_code == 403


def test_session_of_a_token_ends_with_it(service: ServiceProcess) -> None:
    began = service.client.post("/v1/session", json={"key": ISSUING.token()})
    assert began.status_code == 200
    ended = service.client.get("/v1/session")
    service.client.cookies.clear()
    assert ended.json()["name"] == "ann"


def test_forged_token_is_refused_and_fetches_nothing(service: ServiceProcess, provider: Site) -> None:
    before = len(provider.asked)
    for headers in ({"jku": f"{provider.url}/evil"}, {"kid": "unknown"}, {"kid": f"{provider.url}/evil"}):
        answer = service.client.get("/v1/session", headers=bearer(ISSUING.token(headers=headers)))
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
    assert len(provider.asked) == before  # keys were read less than half a minute ago
    assert {one.path for one in provider.asked} == {"/jwks"}


def test_usage_names_the_tokens_subject(service: ServiceProcess) -> None:
    rows = service.client.get("/v1/usage", headers=bearer(ISSUING.token())).json()["items"]
    assert "token:acme:ann" in {row["key"] for row in rows}
