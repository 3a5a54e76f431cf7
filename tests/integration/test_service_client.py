"""`htfi.client` against `htfi serve` over real sockets: both forms give the same, and streams go on over restarts."""

import asyncio
import inspect
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import htfi
from htfi.client import (
    AsyncClient,
    Client,
    ForecastQuestion,
    ScenarioQuestion,
    ServiceProblem,
    StreamedDecision,
)
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from service_process import ServiceProcess

BARS = [
    {
        "date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}",
        "symbol": symbol,
        "close": start + (day * step) % 11,
    }
    for day in range(70)
    for symbol, start, step in (("ACME", 100, 7), ("EUR/USD", 50, 5))
]
CALLS: dict[str, tuple[object, ...]] = {
    "health": (),
    "series": (),
    "forecast": ("EUR/USD/1d",),
    "forecasts": ("", 1),
    "history": ("ACME/1d", None, 3),
    "chart": ("ACME/1d",),
    "decisions": ("ACME",),
    "decision": (3,),
    "explanation": (3,),
    "proof": (3,),
    "checkpoint": (),
    "forecast_bars": (ForecastQuestion(bars=[one for one in BARS if one["symbol"] == "ACME"]),),
    "scenario": (ScenarioQuestion(shocks=["ACME=-5%"], draws=200),),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("run")
    with htfi.open_run(found, interval="1d", models=None) as run:
        list(run.feed(BARS))
    return found


@pytest.fixture(scope="module")
def lines(folder: Path) -> list[str]:
    return (folder / "decisions.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def service(folder: Path, lines: list[str]) -> Iterator[ServiceProcess]:
    with ServiceProcess("--follow", str(folder)) as started:
        started.wait_for(len(lines))
        yield started


def test_every_call_of_the_client_is_among_those_compared() -> None:
    named = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    assert named == {
        name for name, _ in inspect.getmembers(AsyncClient, inspect.isfunction) if not name.startswith("_")
    }
    assert named - {"close", "stream"} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_both_forms_give_the_same(service: ServiceProcess, name: str) -> None:
    async def awaited() -> object:
        async with AsyncClient(service.url) as client:
            return await getattr(client, name)(*CALLS[name])

    with Client(service.url) as client:
        waited = getattr(client, name)(*CALLS[name])
    assert waited == asyncio.run(awaited())
    assert waited


def test_answers_are_those_of_the_record(service: ServiceProcess, lines: list[str]) -> None:
    with Client(service.url) as client:
        assert client.decision(3) == json.loads(lines[3])
        newest = client.forecast("EUR/USD/1d")
        assert newest.decision_id == client.decision(newest.index or 0)["decision"]["id"]
        page = client.decisions(limit=7)
        assert page.items == [json.loads(line) for line in lines[:-8:-1]]
        assert client.decisions(before=page.next, limit=1).items == [json.loads(lines[-8])]


def test_refusals_name_their_status(service: ServiceProcess) -> None:
    with Client(service.url) as client:
        with pytest.raises(ServiceProblem, match="no released forecast of NONE") as refused:
            client.forecast("NONE/1d")
        assert refused.value.status == 404
        with pytest.raises(ServiceProblem) as refused:
            client.forecast("../../etc/passwd")
        assert refused.value.status == 404
    with (
        Client("http://127.0.0.1:9") as client,
        pytest.raises(DependencyUnavailable, match="is `htfi serve` running"),
    ):
        client.series()
    with pytest.raises(InvalidInput, match="no address of a service"):
        Client("ftp://example.com")


def test_streams_of_both_forms_go_on_over_a_killed_service(folder: Path, lines: list[str]) -> None:
    wanted = list(range(10, len(lines)))
    with ServiceProcess("--follow", str(folder)) as service:
        service.wait_for(len(lines))
        found: list[StreamedDecision] = []
        with Client(service.url) as client:
            for one in client.stream(10):
                found.append(one)
                if len(found) == 5:
                    service.end(signal.SIGKILL)
                    break
        assert [one.index for one in found] == wanted[:5]
        going_on: list[int] = []
        begun = threading.Event()

        def follow() -> None:
            async def read() -> None:
                async with AsyncClient(service.url) as client:
                    async for one in client.stream(15):
                        going_on.append(one.index)
                        begun.set()
                        if one.index == wanted[-1]:
                            return

            asyncio.run(read())

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        with ServiceProcess("--follow", str(folder), port=service.port):
            thread.join(timeout=30)
        assert not thread.is_alive()
        assert begun.is_set()
        assert going_on == wanted[5:]
        assert [one.line for one in found] == [json.loads(lines[index]) for index in wanted[:5]]
