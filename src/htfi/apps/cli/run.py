"""`htfi run`: a stream of prices and news in, recorded and released forecasts out.

A run from its opening to its last line: the view, the signals that end it, what it leaves. Run and edge share it.
"""

import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO

import click

from htfi import sample
from htfi.apps.cli.main import EXIT_INTERRUPTED
from htfi.apps.cli.signals import graceful_shutdown, stop_by_signal
from htfi.apps.options import (
    bar_option,
    governance_option,
    listen_option,
    mapping_option,
    out_option,
    outputs_option,
    pace_option,
    plain_option,
    report_option,
    settings_option,
    switch_option,
    telemetry_options,
    zone_option,
)
from htfi.decoding.config import RULES
from htfi.domain.counts import counted
from htfi.domain.errors import DependencyUnavailable, InvalidInput

if TYPE_CHECKING:
    from htfi.apps.cli.view.state import RunCounters
    from htfi.wiring.cluster.edge import EdgeNode
    from htfi.wiring.control import DeadMansSwitch
    from htfi.wiring.outputs import OutputFile
    from htfi.wiring.run import OpenRun
    from htfi.wiring.sandbox.serving import ServedSettings
    from htfi.wiring.settings import Settings
    from htfi.wiring.telemetry import ProcessTelemetry, TelemetryOptions
    from htfi.wiring.trading import OpenOrders

EPILOG = """\b
Examples:
  htfi run                                       the embedded sample
  htfi run prices.csv news.jsonl --out run1      columns are recognised
  htfi run --map feeds.toml --out run1           a mapping of columns
  htfi run trades.parquet quotes.parquet --bar 1m
  tail -f ticks.jsonl | htfi run - --stdout      a live stream
  htfi run fix://prices.toml --bar 1m            prices by FIX
  htfi run --pace 86400 --out run1               watch it, a day per second
  htfi run prices.csv news.jsonl --target models/target --draft models/draft

To resume a run that was stopped or killed, run the same command again.
"""


@click.command("run", epilog=EPILOG)
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@mapping_option
@zone_option
@out_option("htfi-run")
@settings_option
@bar_option
@click.option("--target", help="Folder of the target model, which reads the news.")
@click.option("--draft", help="Folder of the draft model, which reads alone when time is short.")
@click.option(
    "--rule",
    type=click.Choice(RULES),
    help="How drafted tokens are accepted: coupled (default) keeps the target's own answers, rejection its "
    "distribution; entropy_aware changes the distribution.",
)
@pace_option
@click.option(
    "--releases",
    type=click.Path(path_type=Path),
    help="released.jsonl of a run to repeat, with its admissions of news.",
)
@click.option("--stdout", "to_stdout", is_flag=True, help="Also write each decision to standard output.")
@listen_option
@governance_option
@switch_option
@outputs_option
@plain_option
@report_option
@telemetry_options
def command(
    files: tuple[str, ...],
    mapping: Path | None,
    zone: str,
    out: Path,
    settings_file: Path | None,
    bar: str | None,
    target: str | None,
    draft: str | None,
    rule: str | None,
    pace: float | None,
    releases: Path | None,
    to_stdout: bool,
    listen: str,
    governance: Path | None,
    switch: "DeadMansSwitch | None",
    outputs: "frozenset[OutputFile] | None",
    plain: bool,
    report: bool,
    telemetry: "TelemetryOptions",
) -> None:
    """Forecast a stream of prices and news; record each decision, then release it.

    Without files it replays the embedded sample. The run's folder then holds the ledger, decisions.parquet and
    decisions.jsonl as --outputs says, the quarantine and report.html.
    """
    from htfi.apps.cli.run import execute_run
    from htfi.wiring.telemetry import ProcessKind, open_telemetry

    served = served_settings(settings_file, governance, bar=bar, target=target, draft=draft, rule=rule)
    with open_telemetry(telemetry, ProcessKind.RUN) as opened:
        execute_run(
            served.settings,
            files,
            mapping,
            out,
            zone=zone,
            mirror=FileIO(1, "wb", closefd=False) if to_stdout else None,
            pace=pace,
            listen=listen,
            switch=switch,
            governance=governance,
            promoted=served.digests,
            releases=releases,
            outputs=outputs,
            plain=plain,
            report=report,
            telemetry=opened,
        )


def adapted(
    settings: "Settings", *, bar: str | None, target: str | None, draft: str | None, rule: str | None = None
) -> "Settings":
    """Settings with what the command line says in their place. Raises: InvalidInput."""
    from htfi.wiring.settings import override

    if bar is not None:
        settings = override(settings, "market", bar=bar)
    for role, folder in (("target", target), ("draft", draft)):
        if folder is not None:
            settings = override(settings, "models", **{role: folder})
    if rule is not None:
        settings = override(settings, "decoding", rule=rule)
    return settings


def served_settings(
    file: Path | None,
    governance: Path | None,
    *,
    target: str | None,
    draft: str | None,
    bar: str | None = None,
    rule: str | None = None,
) -> "ServedSettings":
    """What a file says, then what is promoted, then what the command line says; tells the user what is promoted.

    Raises: InvalidInput; IntegrityError where something promoted is missing or altered.
    """
    from htfi.wiring.sandbox.serving import serve_promoted

    served = serve_promoted(
        file,
        governance,
        lambda settings: adapted(settings, bar=bar, target=target, draft=draft, rule=rule),
    )
    for line in served.lines:
        click.echo(f"htfi: {line}", err=True)
    return served


STOP_S = 120.0  # from the signal: the item in hand, a reading in depth included, and saving the state
OUTPUTS_S = 1_800.0  # for the table and the page of a long run
CLOSING_S = 10.0  # for streams and threads to end
LAST_LINES_S = 3.0  # for the reader of standard output, where the run was stopped


def execute_run(
    settings: "Settings",
    files: Sequence[str],
    mapping: Path | None,
    folder: Path,
    *,
    zone: str,
    mirror: BinaryIO | None,
    pace: float | None,
    plain: bool,
    report: bool,
    edge: "EdgeNode | None" = None,
    releases: Path | None = None,
    outputs: "frozenset[OutputFile] | None" = None,
    listen: str = "",
    switch: "DeadMansSwitch | None" = None,
    governance: Path | None = None,
    promoted: Mapping[str, str] = MappingProxyType({}),
    with_orders: bool = False,
    venue_files: Sequence[Path] = (),
    telemetry: "ProcessTelemetry | None" = None,
) -> None:
    """Run to the end or until interrupted; exits with 130 then. Without files it is the embedded sample.

    Raises: InvalidInput where no decision was made and a source's every row was quarantined.
    """
    from rich.console import Console

    from htfi.apps.cli.nonblocking import nonblocking_output
    from htfi.apps.cli.view.display import open_view
    from htfi.apps.cli.view.state import ViewModel
    from htfi.wiring.run import open_run
    from htfi.wiring.telemetry import NO_PROCESS_TELEMETRY

    telemetry = telemetry or NO_PROCESS_TELEMETRY
    title = (
        ", ".join(Path(name).name for name in [*([mapping] if mapping else []), *files])
        or "the embedded sample"
    )
    if not files and mapping is None:
        mapping = sample.MAPPING
    console = Console(stderr=mirror is not None, emoji=False)  # no name of a file or a symbol means one
    model = ViewModel(f"{title} → {folder}")
    started_s = time.perf_counter()
    opened = open_run(
        settings,
        folder,
        files,
        mapping,
        zone=zone,
        mirror=mirror,
        pace=pace,
        watch=model.record,
        edge=edge,
        releases=releases,
        outputs=outputs,
        listen=listen,
        switch=switch,
        governance_folder=governance,
        promoted=promoted,
        with_orders=with_orders,
        venue_files=venue_files,
        telemetry=telemetry.points,
    )
    with opened as run:
        show_metrics(telemetry, run, folder, edge)
        ends = graceful_shutdown(run.loop.stop, STOP_S, "the run")
        stops = stop_by_signal(run.controls.push)
        with (
            nonblocking_output(console) as out,
            ends as ending,
            stops,
            open_view(console, plain) as view,
        ):

            def look() -> None:
                if view.due() and not out.is_behind:
                    view.update(model.snapshot(collect_counters(run, edge)))

            look()  # a slow stream shows what it waits for
            with reader_may_leave(folder):
                run.run_to_end(look)
            view.update(model.snapshot(collect_counters(run, edge)))
        from htfi.apps.cli.price_notices import print_price_notices
        from htfi.apps.cli.summary import print_summary  # after the run, which it would only delay

        ending.extend(OUTPUTS_S)
        written = write_outputs(run, folder, with_report=report)
        ending.extend(CLOSING_S)
        nodes = collect_counters(run, edge) if edge is not None else None
        print_summary(console, run, written, time.perf_counter() - started_s, nodes)
        print_price_notices(run.loop.components.forecaster)
        with reader_may_leave(folder):
            hand_out_lines(run, folder)
    if run.loop.stopped:
        click.echo("htfi: stopped; run the same command again to resume", err=True)
        sys.exit(EXIT_INTERRUPTED)
    refused = run.rejected_sources()
    if refused and not run.loop.recorder.num_decided:
        raise InvalidInput(refused[0])


def show_metrics(
    telemetry: "ProcessTelemetry", run: "OpenRun", folder: Path, edge: "EdgeNode | None"
) -> None:
    """Let the process's metrics show an open run; says where, where it has an address of its own."""
    if not telemetry.pages:
        return
    from htfi.wiring.run_metrics import run_readings

    telemetry.registry.read_from(lambda: run_readings(run, folder, telemetry.points))
    if edge is not None:
        from htfi.wiring.cluster.metrics import edge_readings

        telemetry.registry.read_from(lambda: edge_readings(edge.monitor, edge.placer.num_placed.copy()))
    if telemetry.port:
        click.echo(f"htfi: metrics at port {telemetry.port}, /metrics", err=True)


@contextmanager
def reader_may_leave(folder: Path) -> Generator[None]:
    """Raises: DependencyUnavailable where the reader of standard output has left."""
    try:
        yield
    except BrokenPipeError:
        raise DependencyUnavailable(
            f"stdout closed; the decisions are in {folder}: run the command again to resume"
        ) from None


def hand_out_lines(run: "OpenRun", folder: Path) -> None:
    """Wait until the reader of standard output has all lines; after a signal only briefly. Raises: BrokenPipeError."""
    from htfi.wiring.outputs import JOURNAL

    if run.mirror is None:
        return
    stop = threading.Event()
    if run.loop.stopped:
        stop.set()
    with graceful_shutdown(stop.set, CLOSING_S, "the run"):
        while not run.mirror.finish(LAST_LINES_S if stop.is_set() else 0.1):
            if stop.is_set():
                num = counted(run.mirror.num_unread, "decision was", "decisions were")
                click.echo(f"htfi: {num} not read from standard output: {folder / JOURNAL} has all", err=True)
                return


def write_outputs(run: "OpenRun", folder: Path, *, with_report: bool) -> list[Path]:
    """Make the table, where it is wanted, and the page from the ledger; the files worth naming.

    Where every decision is withheld there is nothing to draw, and no page.
    """
    from htfi.apps.cli.price_notices import input_notices
    from htfi.apps.cli.report.command import write_report
    from htfi.pipeline.record.decoded_once import DecodedOnce, decode_each
    from htfi.wiring.derived_files import write_derived_files
    from htfi.wiring.event_file import event_times, write_event_facts
    from htfi.wiring.notice_file import write_notices

    recorder, forecaster = run.loop.recorder, run.loop.components.forecaster
    write_notices(folder, input_notices(forecaster, run.calendar_notices), resumed=run.num_resumed > 0)
    write_event_facts(folder, forecaster.event_facts(), event_times(run.events, forecaster.series))
    if not with_report or recorder.num_decided <= recorder.num_withheld:
        return write_derived_files(run, folder, run.decoded or decode_each)
    decode = run.decoded or DecodedOnce(run.ledger.size)
    written = write_derived_files(run, folder, decode)
    return [write_report(folder, decode=decode), *written]


def orders_words(orders: "OpenOrders") -> str:
    """Orders, fills and the result so far, for the view."""
    from htfi.apps.cli.orders.view import short_words

    return short_words(orders.accounts())


def collect_counters(run: "OpenRun", edge: "EdgeNode | None" = None) -> "RunCounters":
    """What the view shows of the run's progress."""
    from htfi.apps.cli.view.state import RunCounters
    from htfi.governance.control.state import held_words

    loop = run.loop
    headlines = loop.components.news.held.readable.recent("", loop.now_ns, 1)
    counters = RunCounters(
        clock_ns=loop.now_ns,
        num_events=loop.num_events,
        num_decisions=loop.recorder.num_decided,
        num_withheld=loop.recorder.num_withheld,
        ledger_size=run.ledger.size,
        ledger_root=run.ledger.root().hex(),
        quarantine=run.quarantine.counts(),
        num_repaired=run.quarantine.num_repaired(),
        held=held_words(loop.components.governance.state_now),
        orders="" if run.orders is None else orders_words(run.orders),
        headline=headlines[0].headline if headlines else "",
        fraction_done=loop.feed.progress(),
    )
    if edge is None:
        return counters
    from htfi.apps.cli.view.counters import add_node_counters

    return add_node_counters(counters, run, edge)
