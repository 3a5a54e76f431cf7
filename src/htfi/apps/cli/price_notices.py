"""What a run says of its prices at its end: splits, renamed series, and series that have no forecast."""

from collections.abc import Sequence

import click

from htfi.apps.display.drawing import printable
from htfi.domain.counts import counted
from htfi.forecasting.forecaster import Forecaster
from htfi.wiring.notice_file import InputNotices

MAX_PRINTED = 8  # more are counted


def print_price_notices(forecaster: Forecaster) -> None:
    """Print what is wrong with a run's prices on standard error, a line each."""
    faults = forecaster.price_faults
    for line in faults[:MAX_PRINTED]:
        click.echo(f"htfi: {line}", err=True)
    if len(faults) > MAX_PRINTED:
        click.echo(f"htfi: and {len(faults) - MAX_PRINTED:,} more faults of prices", err=True)
    for line in without_forecast(forecaster):
        click.echo(f"htfi: {line}", err=True)


def input_notices(forecaster: Forecaster, calendar: Sequence[str]) -> InputNotices:
    """All that a run noticed about its prices, with what was noticed about its calendar."""
    return InputNotices(
        prices=forecaster.price_faults, series=without_forecast(forecaster), calendar=list(calendar)
    )


def without_forecast(forecaster: Forecaster) -> list[str]:
    """A line on the series ('SYMBOL/interval') whose price never moves, and one on those with too few bars."""
    names = forecaster.series
    ready: list[bool] = forecaster.forecast(names).ready.tolist() if names else []
    silent = [name for name, is_ready in zip(names, ready, strict=True) if not is_ready]
    still = [name for name in silent if forecaster.age(name) < 0]
    short = [name for name in silent if forecaster.age(name) >= 0]
    lines = (
        [f"no forecast of {_listed(still)}, whose price never moves: check the column of prices"]
        if still
        else []
    )
    if short:
        lines.append(
            f"no forecast of {_listed(short)}: fewer bars since its first move than forecasting.history_bars: give "
            "more history"
        )
    return lines


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(printable(name) for name in names[:MAX_PRINTED])
    rest = len(names) - MAX_PRINTED
    return f"{shown} and {counted(rest, 'more', 'more')}" if rest > 0 else shown
