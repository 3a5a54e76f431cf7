"""`htfi run`: a stream of prices and news in, recorded and released forecasts out."""

import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from htfi import sample
from htfi.domain.errors import DependencyUnavailable

if TYPE_CHECKING:
    from htfi.apps.cli.view_state import Counters
    from htfi.pipeline.loop import Loop
    from htfi.wiring.engine import Run

INTERRUPTED = 130  # what a shell reports for a program that Ctrl-C ended
ITEMS_PER_LOOK = 64  # how often the view's clock is looked at

EPILOG = """\b
Examples:
  htfi run                                       the embedded sample
  htfi run prices.csv news.jsonl --out run1      your files; kinds and columns are recognised
  htfi run --map feeds.toml --out run1           columns, zones and live sources by a mapping
  htfi run trades.parquet quotes.parquet --bar 1m
  tail -f ticks.jsonl | htfi run - --stdout      a live stream in, decisions out as JSON lines
  htfi run --pace 86400 --out run1               watch: a day a second
  htfi run news.jsonl prices.csv --target ~/models/Qwen3-1.7B --draft ~/models/Qwen3-0.6B
\b
A run that was stopped or killed goes on where it was: give the same command again.
"""


@click.command("run", epilog=EPILOG)
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@click.option("--map", "mapping", type=click.Path(path_type=Path), help="TOML that maps sources and columns.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("htfi-run"), show_default=True, help="Folder."
)
@click.option("--settings", "settings_file", type=click.Path(path_type=Path), help="TOML of settings.")
@click.option("--bar", help="Bars built from ticks: 60s, 5m, volume:5000 or dollar:1000000.")
@click.option("--target", help="Folder of the language model that reads news when there is time.")
@click.option("--draft", help="Folder of the small model that reads when time is short.")
@click.option(
    "--pace", type=click.FloatRange(min=0, min_open=True), help="Replay at so many times real speed."
)
@click.option("--stdout", "to_stdout", is_flag=True, help="Also write each decision to standard output.")
@click.option("--plain", is_flag=True, help="Lines instead of the live view.")
@click.option("--report/--no-report", default=True, show_default=True, help="Write report.html at the end.")
def command(
    files: tuple[str, ...],
    mapping: Path | None,
    out: Path,
    settings_file: Path | None,
    bar: str | None,
    target: str | None,
    draft: str | None,
    pace: float | None,
    to_stdout: bool,
    plain: bool,
    report: bool,
) -> None:
    """Forecast a stream of prices and news; record each decision, then release it.

    Without files it replays the embedded sample. DIR then holds decisions.jsonl and decisions.parquet, the
    ledger, the quarantine and report.html.
    """
    from rich.console import Console

    from htfi.apps.cli.summary import print_summary
    from htfi.apps.cli.view import open_view
    from htfi.apps.cli.view_state import Desk
    from htfi.wiring.engine import open_run
    from htfi.wiring.settings import load_settings, override

    settings = load_settings(settings_file)
    if bar is not None:
        settings = override(settings, "market", bar=bar)
    for role, folder in (("target", target), ("draft", draft)):
        if folder is not None:
            settings = override(settings, "models", **{role: folder})
    title = (
        ", ".join(Path(name).name for name in [*([mapping] if mapping else []), *files])
        or "the embedded sample"
    )
    if not files and mapping is None:
        mapping = sample.MAPPING
    console = Console(stderr=to_stdout)
    desk = Desk(f"{title} → {out}")
    mirror = FileIO(1, "wb", closefd=False) if to_stdout else None
    started_s = time.perf_counter()
    with open_run(settings, out, files, mapping, mirror=mirror, pace=pace, watch=desk.note) as run:
        with _signals_stop(run.loop), open_view(console, plain) as view:
            num_items = 0

            def look() -> None:
                nonlocal num_items
                num_items += 1
                if num_items % ITEMS_PER_LOOK == 0 and view.due():
                    view.update(desk.snapshot(count(run)))

            try:
                run.go(look)
            except BrokenPipeError:
                raise DependencyUnavailable(
                    f"whoever read standard output has left; the decisions are in {out}, the same command goes on"
                ) from None
            view.update(desk.snapshot(count(run)))
        outputs = finish(run, out, with_report=report)
        print_summary(console, run, outputs, time.perf_counter() - started_s)
    if run.loop.stopped:
        click.echo("htfi: stopped as asked; the same command goes on from here", err=True)
        sys.exit(INTERRUPTED)


def finish(run: "Run", folder: Path, *, with_report: bool) -> list[Path]:
    """Make the table and the page from the journal; the files worth naming."""
    from htfi.apps.cli.report.command import write_report
    from htfi.wiring.outputs import JOURNAL, write_parquet

    outputs = [folder / JOURNAL]
    if run.loop.recorder.num_decided:
        outputs.append(write_parquet(folder))
        if with_report:
            outputs.insert(0, write_report(folder))
    return outputs


def count(run: "Run") -> "Counters":
    """What the view shows of the run's progress."""
    from htfi.apps.cli.view_state import Counters

    loop = run.loop
    headlines = loop.rooms.wire.recent("", loop.now_ns, 1)
    return Counters(
        clock_ns=loop.now_ns,
        num_events=loop.num_events,
        num_decisions=loop.recorder.num_decided,
        num_withheld=loop.recorder.num_withheld,
        ledger_size=run.ledger.size,
        ledger_root=run.ledger.root().hex(),
        quarantine=run.quarantine.counts(),
        headline=headlines[0].headline if headlines else "",
        fraction_done=loop.feed.progress(),
    )


@contextmanager
def _signals_stop(loop: "Loop") -> Generator[None]:
    """Ctrl-C and SIGTERM end the run after the item in hand; a second one ends it at once."""

    def stop(signum: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(signum, before[signal.Signals(signum)])
        loop.stop()

    before = {signum: signal.signal(signum, stop) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
