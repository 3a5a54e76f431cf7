"""How the ledger looks in a terminal: its head, one decision, and progress; `htfi ledger` calls it."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import click
from msgspec import UNSET

from htfi.domain.decision import Decision, NewsTilt
from htfi.domain.time import format_ns
from htfi.governance.ledger.log import LogReader
from htfi.governance.ledger.tombstones import is_tombstone, parse_tombstone
from htfi.pipeline.record.entry import entry_id, try_decode_entry
from htfi.pipeline.record.unread import UnreadEntries

NUM_NEWEST = 10
MIN_SIZE_FOR_BAR = 20_000  # fewer entries are done before a bar could be read
SHOWN_LEVELS = (0.01, 0.05, 0.1, 0.5, 0.9, 0.95, 0.99)  # seven columns fit a terminal of 80

_STYLES = {"calm": "green", "normal": "cyan", "stressed": "yellow", "shock": "bold red"}


@contextmanager
def progress(title: str, total: int) -> Generator[Callable[[int, int], None]]:
    """A callback (done, total) that moves a bar on standard error; without a terminal it does nothing."""
    if total < MIN_SIZE_FOR_BAR or not sys.stderr.isatty():
        yield _quiet
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=total)

        def advance(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield advance


def report_unread(unread: UnreadEntries) -> None:
    """Say on standard error which entries were left out, and why."""
    for sentence in unread.sentences():
        click.echo(f"htfi: {sentence}", err=True)


def rationale_opening(entry: bytes) -> str:
    """An entry in a few words: the decision's id, or its first bytes."""
    return entry_id(entry) or repr(entry[:60])


def show_head(log: LogReader) -> None:
    """Origin, size, root and key, and the newest entries as a table."""
    from rich.text import Text

    from htfi.apps.display.tables import print_facts, print_line, print_table

    checkpoint, note = log.checkpoint()
    size = checkpoint.size
    print_facts({
        "log ": checkpoint.origin, "size ": f"{size:,}", "root ": checkpoint.root.hex(), "key ": str(log.key)
    })  # fmt: skip
    witnesses = sorted({s.name for s in note.signatures} - {checkpoint.origin})
    if witnesses:
        print_line(f"cosigned by {', '.join(witnesses)}")
    if size == 0:
        return
    columns = ("entry", "series", "as of", "regime", "verdict")
    rows: list[list[str | Text]] = []
    start = max(0, size - NUM_NEWEST)
    for index, entry in enumerate(log.entries(start, size), start):
        decision = try_decode_entry(entry)
        if decision is None:
            what = "deleted: its retention ended" if is_tombstone(entry) else repr(entry[:40])
            rows.append([str(index), what, "", "", ""])
            continue
        regime = Text(decision.regime, _STYLES[decision.regime])
        rows.append(
            [str(index), decision.series, format_ns(decision.as_of_ns), regime, decision.verdict.outcome]
        )
    print_table(columns, rows, title=f"newest {min(NUM_NEWEST, size)} of {size:,}")


def show_entry(index: int, entry: bytes) -> None:
    """One decision: what was forecast, why, what policy said, and from what."""
    from rich.text import Text

    from htfi.apps.display.known_events import known_events_words
    from htfi.apps.display.tables import console, print_facts, print_line, print_table

    if (gone := parse_tombstone(entry)) is not None:
        print_line(
            f"entry {index} was deleted at {format_ns(gone.at_ns)} under the retention class {gone.retention_class}"
        )
        print_line(
            f"leaf hash {gone.leaf_hash.hex()}, entry {gone.authorisation} of the governance log orders it"
        )
        return
    decision = try_decode_entry(entry)
    if decision is None:
        click.echo(f"entry {index}, {len(entry):,} bytes, is not a decision of this version:")
        click.echo(repr(entry))  # a terminal obeys bytes as they are
        return
    head = Text(f"entry {index}  ").append(decision.series, "bold")
    head.append(f"  {format_ns(decision.as_of_ns)}  last {decision.last_price:g}  ")
    console().print(head.append(decision.regime, _STYLES[decision.regime]), soft_wrap=True)
    forecast = decision.forecast
    columns = [q for q, level in enumerate(forecast.levels) if level in SHOWN_LEVELS]
    print_table(
        ["bars ahead", *(f"{forecast.levels[q]:.0%}" for q in columns)],
        [
            [str(horizon), *(f"{100 * quantiles[q]:+.2f}" for q in columns)]
            for horizon, quantiles in zip(forecast.horizons, forecast.quantiles, strict=True)
        ],
        title="log return, %",
    )
    print_line(decision.rationale.text)
    verdict = decision.verdict
    rows = ", ".join(f"{source} {first}–{last}" for source, (first, last) in decision.inputs.rows.items())
    then = decision.plan.rung_after_release
    weights = "; ".join(f"{name} {shares[0]:.0%}" for name, shares in forecast.shares.items() if shares)
    facts = (
        ("verdict", f"{verdict.outcome}" + (f": {'; '.join(verdict.reasons)}" if verdict.reasons else "")),
        ("rung", f"{decision.plan.rung}, {decision.plan.reason_text}" + (f"; then {then}" if then else "")),
        ("weights", weights),
        ("tilt", _tilt(forecast.tilt)),
        ("events", known_events_words(decision)),
        ("inputs", f"{decision.inputs.num_events} events: {rows}"),
        ("digest", decision.inputs.digest),
        ("settings", decision.settings_digest),
        ("models", ", ".join(f"{name} {version}" for name, version in decision.models.items())),
        ("id", decision.id),
        ("trigger", _trigger(decision)),
        ("amends", decision.amends),
    )
    print_facts({name: text for name, text in facts if text})


def show_statements(folder: Path, decision: Decision) -> None:
    """What changed, word by word, in the documents of central banks that a decision considered; nothing where the run's
    file does not have them.
    """
    from htfi.apps.display.statements import comparison_text
    from htfi.apps.display.tables import console, print_line
    from htfi.wiring.statement_file import read_statements

    context = decision.news_context
    asked = (
        {one.id for one in context.considered if one.statement is not UNSET}
        if context is not None
        else set[str]()
    )
    for document in read_statements(folder) if asked else ():
        if document.item_id in asked:
            print_line(f"{document.headline} ({document.item_id}), beside {document.before_id}:")
            console().print(comparison_text(document.comparison), soft_wrap=True)


def _trigger(decision: Decision) -> str:
    """What news made it due between two bars, why it matters, and what it replaces."""
    trigger = decision.news_trigger
    if trigger is UNSET:
        return ""
    items = "; ".join(f"{item.id} ({', '.join(item.reasons)})" for item in trigger.items)
    return f"{decision.trigger}: {items}; replaces {trigger.replaces}"


def _tilt(tilt: NewsTilt | None) -> str:
    """What the news changed, by horizon, and how far they lie from the numbers."""
    if tilt is None:
        return ""
    by_horizon = ", ".join(
        f"{weight:.0%} of {100 * shift:+.2f}% and {stretch:.2f}x"
        for weight, shift, stretch in zip(tilt.weight, tilt.shift, tilt.stretch, strict=True)
    )
    return (
        f"{by_horizon} by {tilt.narrator}; divergence {tilt.divergence:.2f}, rank {tilt.divergence_rank:.2f}"
    )


def _quiet(_done: int, _total: int) -> None:
    pass
