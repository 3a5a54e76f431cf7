# ruff: noqa: INP001, T201 - a script that stands alone and prints for the person who starts it
"""Makes the pictures of the README and the docs anew, from what commands print and write today.

    .venv/bin/python docs/pictures/make.py [NAME]...      all of them, or terminal, forecast, report, what-if, …

It needs Chromium and runs the sample: half a minute. bench-decode and eval-mini are pictures of pages that `make goals`
writes to build/goals, which takes hours; where one is not there, its picture stays as it is.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console, Group
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from htfi import sample
from htfi.apps.cli.run import collect_counters
from htfi.apps.cli.view.panels import frame
from htfi.apps.cli.view.state import ViewModel
from htfi.domain.time import format_ns
from htfi.wiring.run import open_run
from htfi.wiring.settings import Settings

PICTURES = Path(__file__).parent
ROOT = PICTURES.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from chromium import Chromium  # noqa: E402 - the browser that the tests drive

MAX_BYTES = 300_000
SHOWN_AT = "2008-10-14T20:15"  # the Treasury has just put capital into banks
THEME = TerminalTheme(
    (20, 23, 27), (217, 222, 228),
    [(40, 44, 52), (239, 83, 80), (70, 177, 123), (224, 160, 48), (76, 155, 232), (199, 146, 234), (99, 199, 178),
     (217, 222, 228)],
)  # fmt: skip


def terminal(browser: Chromium, folder: Path) -> None:
    """The live view of the sample's run, on a terminal of 120 × 36, at SHOWN_AT."""
    model, console = (
        ViewModel(f"the embedded sample → {Path('build/sample')}"),
        Console(record=True, width=120, file=_nowhere()),
    )
    with open_run(Settings(), folder / "run", [], sample.MAPPING, watch=model.record) as run:

        def look() -> None:
            if format_ns(run.loop.now_ns) >= SHOWN_AT:
                run.loop.stop()

        run.run_to_end(look)
        console.print(Group(*frame(model.snapshot(collect_counters(run)), 120, 36)))
    _save(browser, folder, console, "htfi run", "terminal")


def forecast(browser: Chromium, folder: Path) -> None:
    """`htfi forecast` on the sample's index, on a terminal of 110 columns."""
    file = next(path for path in sample.paths() if path.stem == "spx_daily")
    said = _htfi("forecast", str(file), folder=folder, columns=110)
    console = Console(record=True, width=110, file=_nowhere())
    console.print(Text.from_ansi(said.rstrip("\n")))
    _save(browser, folder, console, f"htfi forecast {file.name}", "forecast")


def news(browser: Chromium, folder: Path) -> None:
    """`htfi news` on a decision of the Fed, on a terminal of 110 columns."""
    headline = "Fed cuts rates by 25 basis points to 4.00-4.25%"
    said = _htfi("news", headline, "--on", "SPX", "--on", "EURUSD", "--on", "VIX", folder=folder, columns=110)
    console = Console(record=True, width=110, file=_nowhere())
    console.print(Text.from_ansi(said.rstrip("\n")))
    _save(browser, folder, console, f'htfi news "{headline}" --on SPX --on EURUSD --on VIX', "news")


def report(browser: Chromium, folder: Path) -> None:
    """Three parts of the page that the sample's run leaves."""
    browser.open(_sample_run(folder) / "report.html", 1180, 1000)
    for name, first, last in (
        ("report", "header", "#readout"),
        ("report-scores", "section:nth-of-type(3)", "section:nth-of-type(5)"),
        ("report-readings", "section:nth-of-type(7)", "section:nth-of-type(7) .words tbody tr:nth-child(3)"),
    ):
        browser.picture(PICTURES / f"{name}.png", first, last)


def what_if(browser: Chromium, folder: Path) -> None:
    """The what-if page of three scenarios on the sample's run, its first screen."""
    _sample_run(folder)
    asked = ("--headline", "Fed cuts rates by 100 bp in an emergency move", "--shock", "SPX -5%")
    asked = (*asked, "--stress", "lehman_2008", "--html", "what-if.html")
    _htfi("scenario", "build/sample", *asked, folder=folder)
    browser.open(folder / "what-if.html", 1200, 1180)
    browser.picture(PICTURES / "what-if.png")


def _sample_run(folder: Path) -> Path:
    """The folder that `htfi run` on the sample leaves, made once."""
    if not (folder / "build/sample").exists():
        _htfi("run", "--out", "build/sample", "--plain", folder=folder)
    return folder / "build/sample"


def goal(browser: Chromium, name: str, page: Path) -> None:
    """The first screen of a page that `make goals` has written."""
    if not page.exists():
        print(f"{name}: {page} is missing: `make goals` writes it; the picture stays")
        return
    browser.open(page, 1200, 1030)
    browser.picture(PICTURES / f"{name}.png")


MAKERS = {
    "terminal": terminal,
    "forecast": forecast,
    "news": news,
    "report": report,
    "what-if": what_if,
    "bench-decode": lambda browser, _: goal(browser, "bench-decode", ROOT / "build/goals/decode.html"),
    "eval-mini": lambda browser, _: goal(browser, "eval-mini", ROOT / "build/goals/mini.html"),
}


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        with Chromium(folder / "profile") as browser:
            for name in names or MAKERS:
                MAKERS[name](browser, folder)
    heavy = [file.name for file in PICTURES.glob("*.png") if file.stat().st_size > MAX_BYTES]
    if heavy:
        sys.exit(f"more than {MAX_BYTES:,} bytes: {', '.join(heavy)}")


def _htfi(*arguments: str, folder: Path, columns: int = 120) -> str:
    """What a command prints on a terminal of that width, with its colours."""
    env = {**os.environ, "FORCE_COLOR": "1", "COLORTERM": "truecolor", "COLUMNS": str(columns)}
    command = [sys.executable, "-m", "htfi", *arguments]
    return subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


def _nowhere():
    return open(os.devnull, "w")  # noqa: PTH123 - a console must write somewhere


def _save(browser: Chromium, folder: Path, console: Console, title: str, name: str) -> None:
    """Save what a console has printed as a picture of a terminal."""
    svg = console.export_svg(title=title, theme=THEME).replace("Fira Code", "DejaVu Sans Mono")
    page = folder / f"{name}.html"
    page.write_text(
        f"<body style='margin:0;background:#14171b'>{svg.replace('<svg ', '<svg width=1280 ', 1)}</body>",
        encoding="utf-8",
    )
    browser.open(page, 1280)
    browser.picture(PICTURES / f"{name}.png", "svg")


if __name__ == "__main__":
    main(sys.argv[1:])
