"""Without the extras a run on files works, and what needs one says in one line what to install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = (
    "grpc",
    "redis",
    "lmdb",
    "httpcore",
    "selectolax",
    "websockets",
    "plotly",
    "httpx",
    "torch",
    "chronos",
)
BARE = f"""
import sys
for name in {EXTRAS!r}:
    sys.modules[name] = None  # barred: as if it were not installed
from htfi.apps.cli.main import main
sys.argv[0] = "htfi"
main()
"""


def bare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process that cannot import a library of any extra."""
    command = [sys.executable, "-c", BARE, *arguments]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_a_run_on_files_with_news_and_its_report_need_no_extra(tmp_path: Path) -> None:
    day = "2024-03-{:02d}"
    bars = ["date,symbol,open,high,low,close,volume"]
    bars += [f"{day.format(at)},ACME,10,11,9,{10 + at % 3 * 0.1:.1f},100" for at in range(1, 29)]
    (tmp_path / "prices.csv").write_text("\n".join(bars) + "\n")
    news = '{"time": "2024-03-20T12:00:00Z", "headline": "Acme raises its outlook", "symbols": ["ACME"]}\n'
    (tmp_path / "news.jsonl").write_text(news)
    done = bare(tmp_path, "run", "prices.csv", "news.jsonl", "--out", "out", "--plain")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/report.html").stat().st_size > 1_000_000
    text = (tmp_path / "out/decisions.jsonl").read_text()
    assert '"encoder":"htfi_facts@' in text
    verified = bare(tmp_path, "ledger", "verify", "out", "--recompute")
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("edge", "prices.csv"), "htfi edge needs grpc: pip install 'htfi[cluster]'"),
        (("cloud",), "htfi cloud needs grpc: pip install 'htfi[cluster]'"),
        (("run", "ws://127.0.0.1:1/"), "(ws://) needs websockets: pip install 'htfi[web]'"),
        (
            ("run", "https://example.com/a"),
            "(https://) needs httpcore and selectolax: pip install 'htfi[web]'",
        ),
    ],
    ids=["edge", "cloud", "ws", "https"],
)
def test_what_needs_an_extra_says_in_one_line_what_to_install(
    tmp_path: Path, arguments: tuple[str, ...], line: str
) -> None:
    done = bare(tmp_path, *arguments)
    assert done.returncode != 0
    assert line in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ('folder = "shared"', "cache.folder needs lmdb: pip install 'htfi[cluster]'"),
        ('redis = "redis://127.0.0.1:1"', "cache.redis needs redis: pip install 'htfi[cluster]'"),
    ],
    ids=["folder", "redis"],
)
def test_a_cache_that_is_configured_says_what_it_needs(tmp_path: Path, setting: str, line: str) -> None:
    (tmp_path / "settings.toml").write_text(f"[cache]\n{setting}\n")
    (tmp_path / "prices.csv").write_text("date,symbol,close\n2024-03-01,ACME,10\n")
    done = bare(tmp_path, "run", "prices.csv", "--settings", "settings.toml", "--out", "out", "--plain")
    assert done.returncode != 0
    assert line in done.stderr
