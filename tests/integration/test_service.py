"""`htfi serve`: what it answers equals the record and the library, over real sockets, whatever clients do."""

import compileall
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

import htfi
from htfi.domain.errors import InvalidInput
from htfi.governance.ledger.export import static_files
from htfi.wiring.ledger import open_ledger_readonly
from service_process import ServiceProcess

ALIVE_SOON = (
    "import htfi.apps.service.streams as streams\n"
    "streams._KEEP_ALIVE_S = 0.05\n"
    "from htfi.apps.cli.main import main\n"
    "main()\n"
)
DAYS = 70
BARS = [
    {
        "date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}",
        "symbol": symbol,
        "close": start + (day * step) % 11,
    }
    for day in range(DAYS)
    for symbol, start, step in (("ACME", 100, 7), ("EUR/USD", 50, 5))
]


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


def problem_of(answer: httpx.Response, status: int) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (answer.status_code, body["status"]) == (status, status)
    assert "\n" not in body["detail"]
    return body["detail"]


def test_newest_forecast_is_that_of_the_newest_decision(service: ServiceProcess, folder: Path) -> None:
    with htfi.open_ledger(folder) as ledger:
        newest = [one for one in ledger if one.series == "ACME/1d"][-1]
    body = service.client.get("/v1/forecasts/ACME/1d").json()
    assert body["decision_id"] == newest.id
    assert [one["log_returns"] for one in body["horizons"]] == [
        list(one) for one in newest.forecast.quantiles
    ]
    first = body["horizons"][0]
    assert first["prices"][0] == pytest.approx(newest.last_price * math.exp(newest.forecast.quantiles[0][0]))
    assert body["rationale"] == newest.rationale.text


def test_forecast_that_a_client_has_is_not_sent_again(service: ServiceProcess) -> None:
    answer = service.client.get("/v1/forecasts/EUR/USD/1d")
    again = service.client.get("/v1/forecasts/EUR/USD/1d", headers={"If-None-Match": answer.headers["ETag"]})
    other = service.client.get("/v1/forecasts/EUR/USD/1d", headers={"If-None-Match": '"0"'})
    assert (answer.status_code, again.status_code, again.content, other.status_code) == (200, 304, b"", 200)
    assert other.json()["symbol"] == "EUR/USD"


def test_pages_of_forecasts_hold_each_series_once(service: ServiceProcess) -> None:
    names = [one["series"] for one in service.client.get("/v1/series").json()["items"]]
    first = service.client.get("/v1/forecasts", params={"limit": 1}).json()
    second = service.client.get("/v1/forecasts", params={"limit": 1, "after": first["next"]}).json()
    assert (
        [one["series"] for one in (*first["items"], *second["items"])] == names == ["ACME/1d", "EUR/USD/1d"]
    )
    assert second["next"] is None


def test_pages_of_decisions_hold_every_line_of_the_record_once(
    service: ServiceProcess, lines: list[str]
) -> None:
    found: list[object] = []
    before: int | None = None
    while True:
        query = {"limit": 7} if before is None else {"limit": 7, "before": before}
        page = service.client.get("/v1/decisions", params=query).json()
        found += page["items"]
        before = page["next"]
        if before is None:
            break
    assert found == [json.loads(line) for line in reversed(lines)]


def test_history_of_a_series_is_of_that_series_alone(service: ServiceProcess, folder: Path) -> None:
    with htfi.open_ledger(folder) as ledger:
        expected = [one.id for one in ledger if one.series == "EUR/USD/1d"]
    page = service.client.get("/v1/history/EUR/USD/1d", params={"limit": 500}).json()
    assert [one["decision_id"] for one in page["items"]] == expected[::-1]
    assert page["next"] is None


def test_stream_sends_the_lines_of_the_record_and_resumes(service: ServiceProcess, lines: list[str]) -> None:
    whole = service.events(0, len(lines))
    assert whole == [(str(index), line) for index, line in enumerate(lines)]
    rest = service.events(0, 3, {"Last-Event-ID": str(len(lines) - 4)})
    assert rest == whole[-3:]


def test_stream_on_which_nothing_comes_says_that_it_is_alive(folder: Path, lines: list[str]) -> None:
    with (
        ServiceProcess("--follow", str(folder), program=(sys.executable, "-c", ALIVE_SOON)) as started,
        socket.create_connection(("127.0.0.1", started.port), timeout=10.0) as reader,
    ):
        started.wait_for(len(lines))
        reader.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        content = b""
        while content.count(b": alive\n\n") < 2 and (part := reader.recv(1 << 16)):
            content += part
    assert content.count(b": alive\n\n") >= 2
    assert b"id: " not in content


def test_websocket_sends_the_same_lines(service: ServiceProcess, lines: list[str]) -> None:
    with connect(f"ws://127.0.0.1:{service.port}/v1/ws?from=5") as socket_:
        found = [socket_.recv(10.0) for _ in range(len(lines) - 5)]
    assert found == lines[5:]


def test_every_file_of_the_exported_log_is_served(service: ServiceProcess, folder: Path) -> None:
    log = open_ledger_readonly(folder)
    files = dict(static_files(log, log.checkpoint()[0].size, lambda *_: None))
    log.close()
    served = {path: service.client.get(f"/{path}").content for path in files}
    assert len(files) >= 3
    assert served == files


def test_proof_of_a_decision_holds_without_the_ledger(
    service: ServiceProcess, folder: Path, tmp_path: Path
) -> None:
    from click.testing import CliRunner

    from htfi.apps.cli.main import cli

    file = tmp_path / "proof.json"
    file.write_bytes(service.client.get("/v1/decisions/9/proof").content)
    log = open_ledger_readonly(folder)
    key = str(log.key)
    log.close()
    done = CliRunner().invoke(cli, ["ledger", "check-proof", str(file), "--key", key])
    assert done.exit_code == 0, done.output


def test_explanation_is_that_of_the_ledger(service: ServiceProcess, folder: Path) -> None:
    with htfi.open_ledger(folder) as ledger:
        expected = [{"title": one.title, "lines": list(one.lines)} for one in ledger.explain(9)]
    assert service.client.get("/v1/decisions/9/explanation").json()["sections"] == expected


def test_posted_bars_are_forecast_as_by_the_library(service: ServiceProcess) -> None:
    bars = [row for row in BARS if row["symbol"] == "ACME"]
    body = service.client.post("/v1/forecasts", json={"bars": bars, "horizons": [1, 2]}).json()
    expected = htfi.forecast(bars, horizons=[1, 2]).one().decision
    assert [one["log_returns"] for one in body["items"][0]["horizons"]] == [
        list(one) for one in expected.forecast.quantiles
    ]
    assert body["items"][0]["index"] is None


def test_scenario_gives_the_figures_of_the_library(service: ServiceProcess, folder: Path) -> None:
    asked = {"shocks": ["ACME -5%"], "positions": {"ACME": 1_000_000.0}, "draws": 500}
    found = service.client.post("/v1/scenarios", json=asked).json()
    expected = htfi.scenario(folder, shock="ACME -5%", positions={"ACME": 1_000_000.0}, draws=500).figures
    assert found == msgspec.json.decode(msgspec.json.encode(expected))


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/v1/forecasts/NONE/1d", 404, "no released forecast of NONE/1d"),
        ("GET", "/v1/decisions/99999", 404, "holds"),
        ("GET", "/v1/decisions/-1", 404, "no decision -1"),
        ("GET", "/v1/decisions/none", 422, "index"),
        ("GET", "/v1/decisions?limit=0", 422, "limit"),
        ("GET", "/v1/stream?from=x", 422, "from"),
        ("GET", "/v1/nothing", 404, "Not Found"),
        ("GET", "/tile/0/x000", 404, "not a tile's path"),
        ("GET", "/tile/9/000", 404, "not a tile's path"),
        ("GET", "/tile/0/999", 404, "not so many entries"),
        ("GET", "/tile/entries/..%2f..%2fsigning.key", 404, "not a tile's path"),
        ("DELETE", "/v1/decisions/1", 405, "Method Not Allowed"),
    ],
)
def test_what_is_not_there_is_a_problem_in_one_line(
    service: ServiceProcess, method: str, path: str, status: int, words: str
) -> None:
    assert words in problem_of(service.client.request(method, path), status)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"bars": []}', "is empty"),
        (b'{"bars": [{"a": 1}]}', "no column"),
        (b'{"bras": []}', "unknown field `bras`"),
        (b'{"bars": "/etc/passwd"}', "Expected `array`"),
        (b"{", "not what this path takes"),
        (b"\xff", "not what this path takes"),
        (b'{"bars":' + b"[" * 100_000, "not what this path takes"),
    ],
)
def test_bodies_that_cannot_be_used_are_refused(service: ServiceProcess, content: bytes, words: str) -> None:
    answer = service.client.post(
        "/v1/forecasts", content=content, headers={"Content-Type": "application/json"}
    )
    assert words in problem_of(answer, 422)


def test_body_of_another_type_and_one_too_large_are_refused(service: ServiceProcess) -> None:
    assert "text/csv" in problem_of(
        service.client.post("/v1/forecasts", content=b"a", headers={"Content-Type": "text/csv"}), 422
    )

    def endless() -> Iterator[bytes]:
        for _ in range(1_000):
            yield b" " * (1 << 20)

    answer = service.client.post(
        "/v1/scenarios", content=endless(), headers={"Content-Type": "application/json"}
    )
    assert "16 MiB" in problem_of(answer, 413)


def test_worker_that_is_killed_is_started_again(service: ServiceProcess) -> None:
    bars = [row for row in BARS if row["symbol"] == "ACME"]
    assert service.client.post("/v1/forecasts", json={"bars": bars}).status_code == 200
    children = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children").read_text().split()
    assert len(children) == 1
    os.kill(int(children[0]), signal.SIGKILL)
    time.sleep(0.05)
    assert service.client.post("/v1/forecasts", json={"bars": bars}).status_code == 200


def test_reader_that_takes_nothing_holds_nobody(service: ServiceProcess, lines: list[str]) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        stuck.sendall(b"GET /v1/stream?from=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert service.events(0, len(lines)) == [(str(index), line) for index, line in enumerate(lines)]


def test_schemas_of_the_api_refer_to_what_is_there(service: ServiceProcess) -> None:
    text = service.client.get("/v1/openapi.json").text
    names = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert names
    assert names <= json.loads(text)["components"]["schemas"].keys()
    assert "ForecastBody" in names
    # a list of no stated items is one that generators of clients leave out, with the path that takes it
    assert '{"type":"array"}' not in text
    assert '{"type":"array",' in text


def test_client_is_generated_from_the_schema_and_compiles(service: ServiceProcess, tmp_path: Path) -> None:
    generator = shutil.which("openapi-python-client")
    if generator is None:
        pytest.skip("needs openapi-python-client: pip install openapi-python-client")
    (tmp_path / "openapi.json").write_text(service.client.get("/v1/openapi.json").text, encoding="utf-8")
    done = subprocess.run(
        [generator, "generate", "--path", "openapi.json", "--output-path", "made", "--fail-on-warning"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    made = list((tmp_path / "made").rglob("*.py"))
    assert len(made) > 100
    assert compileall.compile_dir(tmp_path / "made", quiet=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_service_with_a_stream_open(folder: Path, number: signal.Signals) -> None:
    with (
        ServiceProcess("--follow", str(folder)) as started,
        socket.create_connection(("127.0.0.1", started.port)) as reader,
    ):
        reader.sendall(b"GET /v1/stream?from=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert reader.recv(15) == b"HTTP/1.1 200 OK"
        assert started.end(number) == 0


def test_run_that_goes_on_is_followed_over_kills_of_the_service(tmp_path: Path) -> None:
    """A client that comes back with the last id that it has misses nothing and gets nothing twice."""
    ids: list[str] = []
    port = 0
    with htfi.open_run(tmp_path, interval="1d", models=None) as run:
        for start in (0, 60, 100):
            list(run.feed(BARS[start : start + 60 if start == 0 else start + 40]))
            with ServiceProcess("--follow", str(tmp_path), port=port) as started:
                port = started.port
                with htfi.open_ledger(tmp_path) as ledger:
                    num = len(ledger) - len(ids)
                headers = {"Last-Event-ID": ids[-1]} if ids else None
                ids += [name for name, _ in started.events(0, num, headers)]
                started.end(signal.SIGKILL)
    with htfi.open_ledger(tmp_path) as ledger:
        assert len(ledger) > 40
        assert ids == [str(index) for index in range(len(ledger))]


def test_run_of_files_is_started_and_ends_with_the_service(tmp_path: Path) -> None:
    prices, out = tmp_path / "prices.csv", tmp_path / "run"
    rows = (f"{row['date']},{row['symbol']},{row['close']}" for row in BARS)
    prices.write_text("\n".join(["date,symbol,close", *rows]) + "\n", encoding="utf-8")
    with ServiceProcess(str(prices), "--out", str(out)) as started:
        started.wait_for(40)
        assert started.client.get("/v1/forecasts/ACME/1d").json()["symbol"] == "ACME"
        assert started.end() == 0
    with htfi.open_ledger(out) as ledger:
        assert ledger.verify().num_entries == len(ledger)


def test_run_that_fails_is_reported_in_one_line(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("a,b\n1,2\n", encoding="utf-8")
    with ServiceProcess(str(prices), "--out", str(tmp_path / "run")) as started:
        assert started.process.stderr is not None
        said = started.process.stderr.readline()
        assert said.startswith("htfi: the run has failed (exit 1):")
        assert "prices.csv" in said
        assert started.client.get("/v1/health").json()["is_running"] is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--listen", "0.0.0.0:0"], "without keys the service answers this machine alone"),
        (["--listen", "127.0.0.1"], "write HOST:PORT"),
        (["--follow", ".", "prices.csv"], "leave the files out"),
    ],
)
def test_arguments_that_cannot_be_served_are_refused_in_one_line(arguments: list[str], words: str) -> None:
    from click.testing import CliRunner

    from htfi.apps.cli.main import cli

    done = CliRunner().invoke(cli, ["serve", *arguments])
    assert isinstance(done.exception, InvalidInput)
    assert words in str(done.exception)


@pytest.mark.parametrize(
    ("headers", "status", "words"),
    [
        ({"Host": "evil.example"}, 421, "no name 'evil.example'"),
        ({"Host": "127.0.0.1.evil.example:80"}, 421, "no name"),
        ({"Host": ""}, 421, "no name ''"),
    ],
)
def test_name_that_is_not_the_services_is_refused(
    service: ServiceProcess, headers: dict[str, str], status: int, words: str
) -> None:
    assert words in problem_of(service.client.get("/v1/series", headers=headers), status)


def test_page_of_another_site_opens_no_websocket(service: ServiceProcess) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{service.port}/v1/ws", origin=Origin("http://evil.example"))
    assert refused.value.response.status_code == 403


def test_chart_is_of_the_record(service: ServiceProcess, folder: Path) -> None:
    with htfi.open_ledger(folder) as ledger:
        of_acme = [one for one in ledger if one.series == "ACME/1d"]
    body = service.client.get("/v1/charts/ACME/1d", params={"limit": 500}).json()
    assert body["prices"] == [one.last_price for one in of_acme]
    before, low = of_acme[-2], body["low"][-1]
    assert low == pytest.approx(before.last_price * math.exp(before.forecast.central_band[0]))
    assert body["low"][0] is None
    assert [len(levels) for levels in body["fan"]] == [5] * len(body["fan_times_s"])
