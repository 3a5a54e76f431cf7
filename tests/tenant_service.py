"""A service with tenants for tests: two recorded runs, a key of each tenant, and the service over them."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import forked
import htfi
from service_process import ServiceProcess

SCOPES = "read,ask,generate,news,act,admin"


def record_run(folder: Path, symbols: tuple[str, ...], base: float = 100.0, num_days: int = 40) -> None:
    """A run's folder with decisions on these symbols, prices near `base`."""
    bars = [
        {
            "date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}",
            "symbol": symbol,
            "close": 100 + (day * 7) % 11,
        }
        for day in range(num_days)
        for symbol in symbols
    ]
    with htfi.open_run(folder, interval="1d", models=None) as run:
        list(run.feed(bars))


def service_command(folder: Path, *words: str) -> str:
    """What `htfi service WORDS --service FOLDER` prints."""
    command = [*forked.HTFI, "service", *words, "--service", str(folder)]
    done = forked.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def issue(
    folder: Path, tenant: str, name: str = "test", scopes: str = SCOPES, *words: str
) -> tuple[str, str]:
    """A new key and its id."""
    text = service_command(
        folder, "keys", "add", tenant, "--name", name, "--scopes", scopes, "--json", *words
    )
    found = json.loads(text)
    return found["key"], found["id"]


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def serve_tenants(folder: Path, *words: str) -> ServiceProcess:
    return ServiceProcess("--service", str(folder), *words)


def until(is_so: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
