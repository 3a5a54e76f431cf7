"""`htfi ledger monitor`: follow a ledger over HTTP and check all that it shows."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htfi.apps.cli.ledger.options import FILE, KEY
from htfi.domain.counts import counted
from htfi.domain.errors import DependencyUnavailable, require_extra

if TYPE_CHECKING:
    from htfi.governance.ledger.monitoring import Advance
    from htfi.wiring.service.monitor import Seen

_KEY_VARIABLE = "HTFI_API_KEY"


@click.command("monitor", short_help="Follow a ledger over HTTP, and check that it only grows.")
@click.argument("url")
@KEY
@click.option(
    "--state",
    type=FILE,
    default=Path("htfi-monitor.json"),
    show_default=True,
    metavar="FILE",
    help="What was checked; created at the first look.",
)
@click.option(
    "--every", "every_s", type=click.FloatRange(0.1), default=5.0, show_default=True, metavar="S",
    help="Seconds between looks.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Look once, and end.")
def monitor_command(url: str, key_text: str | None, state: Path, every_s: float, once: bool) -> None:
    """Check every entry that the log at URL publishes, and that it only grows.

    URL is that of `htfi serve`, or of any log with tiles (c2sp.org/tlog-tiles). Every entry is hashed onto the tree
    that was checked before; the root must be the one that the log signed. A log that was rolled back, forked or
    altered ends the command with exit code 1, and both checkpoints lie beside the state. A log that cannot be reached
    is waited for.
    Where the service asks for a key, the environment variable HTFI_API_KEY holds it.

    \b
    Examples:
      htfi ledger monitor http://127.0.0.1:8350 --key htfi.run+bd1cfb4f+AV0R…
      htfi ledger monitor https://log.example --once
    """
    require_extra("htfi ledger monitor", "client", "httpx")
    from htfi.wiring.service.monitor import open_monitor

    with open_monitor(url, os.environ.get(_KEY_VARIABLE, ""), state, key_text) as monitor:
        was_reached = True
        while True:
            try:
                monitor.look(_report)
                was_reached = True
            except DependencyUnavailable as error:
                if once:
                    raise
                if was_reached:
                    click.echo(f"{_now()} {error}; asking again every {every_s:g} s", err=True)
                was_reached = False
            if once:
                if monitor.known.checkpoint:
                    click.echo(f"{_now()} {counted(monitor.known.size, 'entry', 'entries')} hold", err=True)
                return
            time.sleep(every_s)


def _report(found: "Advance", seen: "Seen") -> None:
    counts = (
        (seen.num_withheld, "withheld"),
        (found.num_deleted, "deleted, of which the hashes were checked"),
        (seen.num_others, "that are no decisions"),
    )
    details = "".join(f", {num:,} {words}" for num, words in counts if num)
    root = found.checkpoint.root.hex()
    click.echo(
        f"{_now()} {found.checkpoint.size:,} entries, {found.num_new:,} new{details}; root {root[:16]}"
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
