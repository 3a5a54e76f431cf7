"""`htfi serve` with metrics: requests by route template, streams, and a client's trace goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from websockets.sync.client import connect

import htfi
from metered_run import OPENMETRICS, scrape
from otlp_receiver import OtlpReceiver
from service_process import ServiceProcess


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("run")
    bars = [
        {"date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}", "symbol": "ACME", "close": 100 + day * 7 % 11}
        for day in range(40)
    ]
    with htfi.open_run(found, interval="1d", models=None) as run:
        list(run.feed(bars))
    return found


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as started:
        yield started


@pytest.fixture(scope="module")
def service(folder: Path, receiver: OtlpReceiver) -> Iterator[ServiceProcess]:
    num = (folder / "decisions.jsonl").read_bytes().count(b"\n")
    with ServiceProcess("--follow", str(folder), "--traces", receiver.url, "--trace-ratio", "0") as started:
        started.wait_for(num)
        yield started


def counted(service: ServiceProcess, route: str, status: int, method: str = "GET") -> float:
    labels = (("method", method), ("route", route), ("status", str(status)))
    return scrape(f"{service.url}/metrics")["htfi_http_requests_total"].get(labels, 0.0)


def test_requests_are_counted_by_route_template_and_never_by_path(service: ServiceProcess) -> None:
    before = counted(service, "/v1/decisions/{index}", 200)
    for index in range(5):
        assert service.client.get(f"/v1/decisions/{index}").status_code == 200
    for word in ("wp-admin", "a" * 500, "../etc/passwd"):
        assert service.client.get(f"/v1/{word}").status_code == 404
    service.client.request("BREW", "/v1/health")
    seen = scrape(f"{service.url}/metrics")["htfi_http_requests_total"]
    assert counted(service, "/v1/decisions/{index}", 200) == before + 5
    routes = {dict(labels)["route"] for labels in seen}
    assert not any("wp-admin" in route or "aaa" in route for route in routes)
    assert {dict(labels)["method"] for labels in seen} <= {"GET", "other"}


@pytest.mark.slow
def test_open_streams_are_a_gauge(service: ServiceProcess) -> None:
    def num(kind: str) -> float:
        return scrape(f"{service.url}/metrics")["htfi_http_streams"][(("kind", kind),)]

    assert (num("sse"), num("websocket")) == (0.0, 0.0)
    with connect(f"ws://127.0.0.1:{service.port}/v1/ws?from=0") as socket:
        socket.recv(timeout=10)
        assert num("websocket") == 1.0
    with service.client.stream("GET", "/v1/stream", params={"from": 0}) as answer:
        lines = answer.iter_lines()
        next(lines)
        assert num("sse") == 1.0
    for _ in range(200):
        if num("sse") + num("websocket") == 0.0:
            break
    assert (num("sse"), num("websocket")) == (0.0, 0.0)


def test_a_clients_trace_goes_on_and_its_id_is_an_exemplar(
    service: ServiceProcess, receiver: OtlpReceiver
) -> None:
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    for flags in ("00", "01"):
        headers = {"traceparent": f"00-{trace}-{parent}-{flags}"}
        assert service.client.get("/v1/series", headers=headers).status_code == 200
    service.client.get("/v1/series", headers={"traceparent": "00-zz-1-01"})
    (span,) = receiver.wait_for(1)
    assert (span.trace_id, span.parent_id, span.name) == (trace, parent, "GET /v1/series")
    text = service.client.get("/metrics", headers={"Accept": OPENMETRICS}).text
    exemplars = [
        sample.exemplar.labels["trace_id"]
        for family in parse_openmetrics(text)
        for sample in family.samples
        if sample.exemplar
    ]
    assert exemplars == [trace]


def test_what_the_service_has_read_is_the_ledger(service: ServiceProcess, folder: Path) -> None:
    seen = scrape(f"{service.url}/metrics")
    assert seen["htfi_served_decisions"][()] == (folder / "decisions.jsonl").read_bytes().count(b"\n")
    assert seen["htfi_served_lag_entries"][()] == 0.0
    assert seen["htfi_worker_starts_total"][()] == 0.0
