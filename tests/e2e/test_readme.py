"""Every command that the README shows works as shown, in order, in a folder with a user's own files."""

import json
import os
import random
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from checks import nonempty
from fix_venue import write_session
from htfi import models
from htfi.apps.cli.main import cli
from nats_server import NatsServer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the commands name: daily prices, news, ticks, and a mapping over odd columns."""
    folder = tmp_path_factory.mktemp("desk")
    rng = random.Random(5)
    price = 50.0
    bars, ticks, odd = ["date,symbol,open,high,low,close,volume"], [], ["when;what;last;qty"]
    for day in range(120):
        close = price * (1 + rng.gauss(0, 0.01))
        date = time.strftime("%Y-%m-%d", time.gmtime(1_704_067_200 + 86_400 * day))
        high, low = max(price, close) + 0.2, min(price, close) - 0.2
        bars.append(f"{date},ACME,{price:.2f},{high:.2f},{low:.2f},{close:.2f},1000")
        price = round(close, 2)
    for second in range(0, 3600 * 2, 2):
        price = round(price * (1 + rng.gauss(0, 0.0002)), 4)
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_704_204_000 + second))
        ticks.append(
            json.dumps({"ts": at + "Z", "symbol": "ACME", "price": price, "size": rng.randrange(1, 9)})
        )
        odd.append(f"{at};ACME;{price};{rng.randrange(1, 9)}")
    (folder / "prices.csv").write_text("\n".join(bars) + "\n")
    quotes = ["ts,symbol,bid,ask,bid_size,ask_size,venue"]
    for second in range(0, 3_600, 2):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_704_204_000 + second))
        middle = round(price + 0.01 * rng.randrange(-5, 6), 2)
        quotes += [
            f"{at},ACME,{middle - 0.01:.2f},{middle + 0.01:.2f},500,500,{venue}" for venue in ("XA", "XB")
        ]
    (folder / "quotes.csv").write_text("\n".join(quotes) + "\n")
    (folder / "venues.toml").write_text('[XNYS]\nfeed = "XA"\n\n[XNAS]\nfeed = "XB"\ntake_fee_bps = 0.2\n')
    (folder / "news.jsonl").write_text(
        '{"published_at": "2024-03-01T12:00:00Z", "id": "n1", "headline": "ACME names a new chairman"}\n'
    )
    (folder / "ticks.jsonl").write_text("\n".join(ticks) + "\n")
    (folder / "odd.csv").write_text("\n".join(odd).replace(";", ",") + "\n")
    (folder / "feeds.toml").write_text(
        '[[source]]\nname = "odd"\npath = "odd.csv"\nkind = "trade"\nzone = "UTC"\n\n'
        '[source.columns]\nts = "when"\nsymbol = "what"\nprice = "last"\nsize = "qty"\n'
    )
    (folder / "releases.csv").write_text(
        "time,currency,event,actual,forecast,previous\n"
        + "".join(
            f"2024-0{month}-05T13:30:00Z,USD,Non-Farm Payrolls,210K,190K,200K\n" for month in range(1, 5)
        )
    )
    (folder / "loans.csv").write_text(
        "sex,ok,repaid\n"
        + "".join(f"{rng.choice('fm')},{rng.randrange(2)},{rng.randrange(2)}\n" for _ in range(200))
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        fix_port = int(free.getsockname()[1])
    write_session(folder / "venue.toml", fix_port, is_venue=True)
    write_session(folder / "fix.toml", fix_port, is_venue=False, orders="send_prices = true")
    (folder / "teams").mkdir()
    (folder / "teams" / "service.toml").write_text(f'[tenants.acme]\nrun = "{folder / "run1"}"\n')
    (folder / "models").mkdir()
    (folder / "models" / "target").symlink_to(models.TARGET)
    (folder / "models" / "draft").symlink_to(models.DRAFT)
    return folder


def test_the_readme_shows_every_command_but_those_that_set_up_a_shell() -> None:
    shown = {line.split()[1] for line in commands() if line.startswith("htfi ")}
    offered = set(cli.list_commands(click.Context(cli)))
    assert shown == offered - {"completion", "settings"}


@pytest.fixture(scope="module")
def background() -> Iterator[list[subprocess.Popen[str]]]:
    """What a line that ends in & has started; ended with the module."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def port() -> str:
    """In place of the README's, which may be taken."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The port of a NATS server, in place of the README's."""
    with NatsServer(tmp_path_factory.mktemp("bus")) as server:
        yield str(server.port)


# What needs neither a shell nor a process of its own: the commands that decide and measure are started as shown.
IN_PROCESS = re.compile(r"htfi (?!run|edge|cloud|bench|venue|serve |mcp|publish)[^|&<>$]*")


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_readme_works(
    desk: Path,
    background: list[subprocess.Popen[str]],
    port: str,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if command.endswith("--help") or IN_PROCESS.fullmatch(command):  # needs no process of its own
        monkeypatch.chdir(desk)
        done = CliRunner().invoke(cli, shlex.split(command)[1:], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("Usage:") == command.endswith("--help")
        assert done.stdout.strip()
        return
    scripts = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    line = command.replace(":7401", f":{port}").replace(":8350", ":0").replace(":8351", ":0")
    if ":4222" in line:
        line = line.replace(":4222", f":{request.getfixturevalue('bus')}")
    if line.endswith("&"):
        process = subprocess.Popen(
            f"exec {line[:-1]}", shell=True, cwd=desk, env=env, stdout=subprocess.PIPE, text=True
        )
        background.append(process)
        assert process.stdout is not None
        assert "is ready" in process.stdout.readline()
        return
    ended = subprocess.run(line, shell=True, cwd=desk, env=env, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()


@pytest.mark.parametrize("target", ["run", "test"])
def test_a_make_target_of_the_readme_exists(target: str) -> None:
    assert f"make {target}" in README
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_every_page_that_the_docs_link_to_exists() -> None:
    links = [
        (page, link)
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text())
        if not link.startswith("http")
    ]
    assert len(links) > 50
    assert [f"{page}: {link}" for page, link in links if not (page.parent / link).exists()] == []


def test_every_extra_that_the_readme_installs_is_offered() -> None:
    extras = re.findall(r"pip install '\.\[(\w+)\]'", README)
    for extra in nonempty(extras):
        assert f'    "{extra}": [' in (ROOT / "setup.py").read_text()
