"""Arguments that the commands of `htfi regulate` share, and what they mean."""

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import click

from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, parse_timestamp
from htfi.governance.regulation.findings import RuleRegime
from htfi.governance.regulation.monitor import Span

ALL = "all"
RUNS = click.argument("runs", metavar="[RUN]...", nargs=-1, type=click.Path(path_type=Path, file_okay=False))
ORDERS = click.option(
    "--orders", "orders", metavar="FILE", multiple=True, type=click.Path(path_type=Path, dir_okay=False),
    help="Order events: .jsonl, .csv or .parquet; repeatable.",
)  # fmt: skip
REGIME = click.option(
    "--regime", "regime", type=click.Choice([*(one.value for one in RuleRegime), ALL]), default=ALL, show_default=True,
    help="Whose rules.",
)  # fmt: skip
GOVERNANCE = click.option(
    "--governance", "governance", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
    help="Governance folder of the installation: verdicts, promotions, bundles.",
)  # fmt: skip
START = click.option("--from", "start", metavar="TIME", help="Report from this day or instant on, UTC.")
END = click.option("--to", "end", metavar="TIME", help="Report up to this day, included, or this instant.")


def regimes_of(name: str) -> Sequence[RuleRegime]:
    return tuple(RuleRegime) if name == ALL else (RuleRegime(name),)


def span_of(start: str | None, end: str | None) -> Span:
    """Raises: InvalidInput."""
    start_ns = 0 if start is None else instant(start, "--from")
    end_ns = Span().end_ns if end is None else instant(end, "--to") + (NS_PER_DAY if _is_day(end) else 0)
    if start_ns >= end_ns:
        raise InvalidInput(f"--from {start} is not before --to {end}: choose a span that holds some time")
    return Span(start_ns, end_ns)


def _is_day(text: str) -> bool:
    return len(text.strip()) == len("2026-01-31")


def instant(text: str, option: str) -> int:
    """UTC nanoseconds of a day or an instant. Raises: InvalidInput."""
    try:
        return parse_timestamp(text, ZoneInfo(str(UTC)))
    except InvalidInput as error:
        raise InvalidInput(f"{option}: {error}: write 2026-01-31 or 2026-01-31T14:30:00Z") from error
