"""The protocol's own judges: its conformance suite, and the Inspector's command line, against `htfi mcp`."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import htfi
from mcp_client import McpHttpProcess
from node_packages import install, node_environment

ROOT = Path(__file__).parents[2]
SOURCE, FOLDER = ROOT / "tests/mcp_suites", ROOT / "build/mcp_suites"
_RESULT = re.compile(r"^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed", re.MULTILINE)
_MIN_NODE = 22
# Of a server without fixtures: what the suite asks of every server.
OF_EVERY_SERVER = (
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-error",
    "server-sse-multiple-streams",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
)
BARS = [
    {"date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}", "symbol": "ACME", "close": 100 + (day * 7) % 11}
    for day in range(60)
]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """With the suites in a folder of the build."""
    found = node_environment(_MIN_NODE)
    install(SOURCE, FOLDER, found)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("run")
    with htfi.open_run(found, interval="1d", models=None) as run:
        list(run.feed(BARS))
    return found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[McpHttpProcess]:
    with McpHttpProcess(folder) as started:
        yield started


@pytest.fixture(scope="module")
def fixtures_url() -> Iterator[str]:
    """Of the server with the suite's fixtures, over our transport."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/mcp_conformance_server.py"), str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    end = time.monotonic() + 30.0
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            break
        except OSError:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()


def conform(url: str, environment: dict[str, str], *arguments: str) -> dict[str, tuple[int, int]]:
    """Of each scenario how many checks passed and failed."""
    command = ["node", "node_modules/.bin/conformance", "server", "--url", url, *arguments]
    done = subprocess.run(
        command, cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    return {name: (int(passed), int(failed)) for name, passed, failed in _RESULT.findall(done.stdout)}


def inspect(environment: dict[str, str], *arguments: str) -> Any:
    """What the Inspector's command line prints."""
    launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    done = subprocess.run(
        ["node", launcher, "--cli", *arguments],
        cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_transport_passes_every_scenario(environment: dict[str, str], fixtures_url: str) -> None:
    found = conform(fixtures_url, environment, "--suite", "all")
    assert len(found) == 32
    assert {name for name, (_, failed) in found.items() if failed} == set()
    assert sum(passed for passed, _ in found.values()) >= 41


@pytest.mark.slow
def test_server_passes_what_is_asked_of_every_server(
    environment: dict[str, str], server: McpHttpProcess
) -> None:
    found = conform(server.url, environment, "--suite", "all")
    assert {name: found[name][1] for name in OF_EVERY_SERVER} == dict.fromkeys(OF_EVERY_SERVER, 0)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_inspector_lists_and_calls(
    environment: dict[str, str], server: McpHttpProcess, folder: Path, transport: str
) -> None:
    if transport == "http":
        target = [server.url, "--transport", "http"]
    else:
        target = [sys.executable, "-m", "htfi", "mcp", "--follow", str(folder)]
        if path := os.environ.get("PYTHONPATH"):
            target = ["-e", f"PYTHONPATH={path}", *target]
    tools = inspect(environment, *target, "--method", "tools/list")["tools"]
    forecast = inspect(
        environment, *target, "--method", "tools/call", "--tool-name", "latest_forecast",
        "--tool-arg", "series=ACME/1d",
    )  # fmt: skip
    resource = inspect(environment, *target, "--method", "resources/read", "--uri", "htfi://decisions/3")
    templates = inspect(environment, *target, "--method", "resources/templates/list")["resourceTemplates"]
    prompts = inspect(environment, *target, "--method", "prompts/list")["prompts"]
    assert len(tools) == 13
    assert forecast["structuredContent"]["series"] == "ACME/1d"
    assert json.loads(resource["contents"][0]["text"])["decision"]["index"] == 3
    assert len(templates) == 3
    assert [one["name"] for one in prompts] == ["morning_briefing", "incident"]
