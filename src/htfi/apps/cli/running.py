"""A run from its opening to its last line: the view, the signals that end it, what it leaves. Run and edge share it."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from htfi import sample
from htfi.apps.cli.signals import ending_gently
from htfi.domain.errors import DependencyUnavailable, InvalidInput

if TYPE_CHECKING:
    from htfi.apps.cli.view_state import Counters
    from htfi.wiring.edge import Edge
    from htfi.wiring.engine import Run
    from htfi.wiring.settings import Settings

INTERRUPTED = 130  # what a shell reports for a program that Ctrl-C ended
STOP_S = 120.0  # from the signal: the item in hand, a reading in depth included, and saving the state
OUTPUTS_S = 1_800.0  # for the table and the page of a long run
CLOSING_S = 10.0  # for streams and threads to end


def carry_out(
    settings: "Settings",
    files: Sequence[str],
    mapping: Path | None,
    folder: Path,
    *,
    mirror: BinaryIO | None,
    pace: float | None,
    plain: bool,
    report: bool,
    edge: "Edge | None" = None,
    releases: Path | None = None,
) -> None:
    """Run to the end or until told to stop; exits with 130 then. Without files it is the embedded sample.

    Raises: InvalidInput where no decision was made and a source's every row was quarantined.
    """
    from rich.console import Console

    from htfi.apps.cli.summary import print_summary
    from htfi.apps.cli.unblocked import unblocked
    from htfi.apps.cli.view import open_view
    from htfi.apps.cli.view_state import Desk
    from htfi.wiring.engine import open_run

    title = (
        ", ".join(Path(name).name for name in [*([mapping] if mapping else []), *files])
        or "the embedded sample"
    )
    if not files and mapping is None:
        mapping = sample.MAPPING
    console = Console(stderr=mirror is not None)
    desk = Desk(f"{title} → {folder}")
    started_s = time.perf_counter()
    opened = open_run(
        settings,
        folder,
        files,
        mapping,
        mirror=mirror,
        pace=pace,
        watch=desk.note,
        edge=edge,
        releases=releases,
    )
    with opened as run:
        ends = ending_gently(run.loop.stop, STOP_S, "the run")
        with unblocked(console) as out, ends as ending, open_view(console, plain) as view:

            def look() -> None:
                if view.due() and not out.is_behind:
                    view.update(desk.snapshot(count(run, edge)))

            look()  # a slow stream shows what it waits for
            try:
                run.go(look)
            except BrokenPipeError:
                raise DependencyUnavailable(
                    f"whoever read standard output has left; the decisions are in {folder}, the same command goes on"
                ) from None
            view.update(desk.snapshot(count(run, edge)))
        ending.allow(OUTPUTS_S)
        outputs = finish(run, folder, with_report=report)
        ending.allow(CLOSING_S)
        nodes = count(run, edge) if edge is not None else None
        print_summary(console, run, outputs, time.perf_counter() - started_s, nodes)
    if run.loop.stopped:
        click.echo("htfi: stopped as asked; the same command goes on from here", err=True)
        sys.exit(INTERRUPTED)
    refused = run.refused_whole()
    if refused and not run.loop.recorder.num_decided:
        raise InvalidInput(refused[0])


def finish(run: "Run", folder: Path, *, with_report: bool) -> list[Path]:
    """Make the table and the page from the ledger; the files worth naming."""
    from htfi.apps.cli.report.command import write_report
    from htfi.wiring.outputs import JOURNAL, write_parquet

    outputs = [folder / JOURNAL]
    if run.loop.recorder.num_decided:
        outputs.append(write_parquet(folder, run.ledger))
        if with_report:
            outputs.insert(0, write_report(folder))
    return outputs


def count(run: "Run", edge: "Edge | None" = None) -> "Counters":
    """What the view shows of the run's progress."""
    from htfi.apps.cli.view_state import Counters

    loop = run.loop
    headlines = loop.rooms.desk.wire.recent("", loop.now_ns, 1)
    counters = Counters(
        clock_ns=loop.now_ns,
        num_events=loop.num_events,
        num_decisions=loop.recorder.num_decided,
        num_withheld=loop.recorder.num_withheld,
        ledger_size=run.ledger.size,
        ledger_root=run.ledger.root().hex(),
        quarantine=run.quarantine.counts(),
        num_repaired=run.quarantine.num_repaired(),
        headline=headlines[0].headline if headlines else "",
        fraction_done=loop.feed.progress(),
    )
    if edge is None:
        return counters
    from htfi.apps.cli.node_counters import with_nodes

    return with_nodes(counters, run, edge)
