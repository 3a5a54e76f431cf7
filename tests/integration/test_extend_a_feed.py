"""docs/extend-a-feed.md, followed to the letter in a copy of the source: a feed and a file format are read."""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/extend-a-feed.md").read_text()
BLOCK = re.compile(r'^```python title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
ROWS = (
    b'{"time": "2024-03-01T15:00:00Z", "symbol": "ACME", "price": 10.5, "size": 3}\n'
    b'{"time": "2024-03-01T15:00:01Z", "symbol": "ACME", "price": 10.6, "size": 1}\n'
)

READ = """
import sys
from pathlib import Path
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.time import SystemClock
from htfi.wiring.feeds import open_feed, resolve
folder = Path(sys.argv[1])
quarantine = QuarantineFile(folder / "q.jsonl")
feed = open_feed(resolve([sys.argv[2]]), inbox=folder, quarantine=quarantine, clock=SystemClock())
print([item.price for item in feed if hasattr(item, "price")])
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with the page's files in it, and its lines in the tables that it names."""
    folder = tmp_path_factory.mktemp("scratch")
    ignored = shutil.ignore_patterns("__pycache__", "models", "*.so")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == 4
    for title, code in blocks:
        table, found, file = title.rpartition(" in ")
        if not found:
            (folder / title).write_text(code)
            continue
        text = (folder / file).read_text()
        start = re.search(rf"^{table}: .*= {{\n", text, re.MULTILINE)
        assert start is not None
        (folder / file).write_text(text[: start.end()] + code + text[start.end() :])
    return folder / "src"


def read(source: Path, folder: Path, named: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", READ, str(folder), named]
    environment = os.environ | {"PYTHONPATH": str(source)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_the_feed_of_the_page_is_read(copied: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            server.settimeout(60)
            connection, _ = server.accept()
            with connection:
                connection.sendall(ROWS)

        thread = threading.Thread(target=serve)
        thread.start()
        done = read(copied, tmp_path, address)
        thread.join()
    assert done.stdout == "[10.5, 10.6]\n", done.stderr


def test_the_check_of_the_page_refuses_an_address_without_a_port(copied: Path, tmp_path: Path) -> None:
    done = read(copied, tmp_path, "tcp://127.0.0.1")
    assert "write tcp://HOST:PORT" in done.stderr


def test_the_file_format_of_the_page_is_read(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "trades.csv2").write_text("time;symbol;price;size\n2024-03-01T15:00:00Z;ACME;10.5;3\n")
    done = read(copied, tmp_path, str(tmp_path / "trades.csv2"))
    assert done.stdout == "[10.5]\n", done.stderr


def test_without_the_page_both_are_refused_in_one_line(tmp_path: Path) -> None:
    done = read(ROOT / "src", tmp_path, "tcp://127.0.0.1:1")
    assert "no feed reads tcp:// addresses: begin it with one of http://" in done.stderr
    (tmp_path / "trades.csv2").write_text("time;symbol;price;size\n")
    done = read(ROOT / "src", tmp_path, str(tmp_path / "trades.csv2"))
    assert "its name does not show its format" in done.stderr
