"""`htfi.client` against `htfi serve` over real sockets: both forms give the same, and streams go on over restarts."""

import asyncio
import inspect
import json
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import htfi
from htfi.client import (
    AsyncClient,
    Client,
    ForecastQuestion,
    ScenarioQuestion,
    ServiceProblem,
    StreamedDecision,
    acts,
    calls,
)
from htfi.client.governance_bodies import (
    AdmissionQuestion,
    AnswerQuestion,
    BreakersBody,
    ClearingQuestion,
    ControlBody,
    DelegateQuestion,
    PolicyBody,
    QuarantinePage,
    QuestionPage,
    ReenableQuestion,
    StopQuestion,
    SuspicionBody,
)
from htfi.client.news_bodies import NewsPage, SubmittedItem
from htfi.client.node_bodies import NodesBody
from htfi.client.order_bodies import CancelAllQuestion, CancelQuestion
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
    "decision_news": (3,),
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
    assert named - {"close", "send", "stream"} == set(CALLS)


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


@pytest.mark.slow
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


# What is asked with other tools: streams by `stream`, tiles by `htfi ledger monitor`, sessions by browsers, models by
# clients of OpenAI's.
OTHERS = re.compile(r"/v1/(stream|session|chat/|completions|embeddings|models|openapi)|/tile/|/metrics|/mcp")
ALL_ACTS: list[calls.Call[Any]] = [
    acts.policy(), acts.breakers(), acts.control(), acts.stop(StopQuestion("a test")),
    acts.reenable(ReenableQuestion("a test")), acts.approvals(), acts.approval(1),
    acts.answer(1, "approve", AnswerQuestion("12345678")), acts.answer(1, "deny", AnswerQuestion("12345678")),
    acts.answer(1, "acknowledge", AnswerQuestion("12345678")),
    acts.delegate(1, DelegateQuestion("12345678", "Bo", "a test")), acts.quarantine(), acts.quarantined("1"),
    acts.admit("1", AdmissionQuestion("a test")), acts.suspicion(), acts.clear_suspicion(ClearingQuestion("a test")),
    acts.submit_news([SubmittedItem("ACME rises")]), acts.news(), acts.news_item("a/b"), acts.orders(),
    acts.order("o/1"), acts.positions(), acts.costs("venue"), acts.cancel_order("o1", CancelQuestion("a test")),
    acts.cancel_orders(CancelAllQuestion("a test")), acts.nodes(), acts.usage(),
]  # fmt: skip
ALL_READS: list[calls.Call[Any]] = [
    calls.health(), calls.series(), calls.forecast("A/1d"), calls.forecasts("", 1), calls.history("A/1d", None, 1),
    calls.chart("A/1d", 2), calls.decisions("", None, 1), calls.decision(1), calls.explanation(1),
    calls.decision_news(1), calls.proof(1, None), calls.checkpoint(), calls.forecast_bars(ForecastQuestion([])),
    calls.scenario(ScenarioQuestion()),
]  # fmt: skip


def test_there_is_a_call_for_every_path_of_the_api(service: ServiceProcess) -> None:
    offered = {
        (method.upper(), re.compile(re.sub(r"\\{[^}]*\\}", "[^ ]+", re.escape(path))))
        for path, methods in service.client.get("/v1/openapi.json").json()["paths"].items()
        for method in methods
        if not OTHERS.match(path)
    }
    sent = [(one.method, one.path) for one in (*ALL_ACTS, *ALL_READS)]
    without = [
        (method, path.pattern)
        for method, path in offered
        if not any(kind == method and path.fullmatch(asked) for kind, asked in sent)
    ]
    assert len(offered) > 35
    assert without == []


def test_answers_to_reads_have_the_stated_shapes(service: ServiceProcess) -> None:
    with Client(service.url) as client:
        read = [
            client.send(one)
            for one in (acts.policy(), acts.breakers(), acts.control(), acts.approvals(), acts.quarantine(),
                        acts.suspicion(), acts.news(), acts.nodes())
        ]  # fmt: skip
        assert [type(one) for one in read] == [
            PolicyBody, BreakersBody, ControlBody, QuestionPage, QuarantinePage, SuspicionBody, NewsPage, NodesBody
        ]  # fmt: skip
        with pytest.raises(ServiceProblem) as refused:
            client.send(acts.orders())
        assert refused.value.status in (404, 422)


def test_an_act_whose_answer_is_lost_is_asked_for_again_and_done_once(folder: Path, tmp_path: Path) -> None:
    served = tmp_path / "run"
    shutil.copytree(folder, served)
    asked = acts.stop(StopQuestion("a test", "Ann Lee"))
    with ServiceProcess("--follow", str(served)) as service, Client(service.url) as client:
        first = client.send(asked)
        service.end(signal.SIGKILL)
        again: list[object] = []
        thread = threading.Thread(target=lambda: again.append(client.send(asked)), daemon=True)
        thread.start()  # while there is no service
        time.sleep(0.2)
        with ServiceProcess("--follow", str(served), port=service.port):
            thread.join(timeout=30)
    assert again == [first]
    assert len(list((served / "control").glob("*"))) == 1
