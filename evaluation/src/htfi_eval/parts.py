"""Evaluations in several parts: each is a module with `figures(quick) -> PartFigures`; they join into one result."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import cast

import click

from htfi.domain.errors import InvalidInput
from htfi_eval.results import Evaluation, PartFigures, TitledTable

MeasurePart = Callable[[bool], PartFigures]


def measure_parts(
    name: str, kind: str, parts: Mapping[str, str], chosen: Sequence[str], *, quick: bool
) -> Evaluation:
    """The figures of the chosen parts, of all where none is; `parts` gives each name's module.

    Raises: InvalidInput for an unknown part, and what the parts raise.
    """
    unknown = [part for part in chosen if part not in parts]
    if unknown:
        raise InvalidInput(f"there is no part '{unknown[0]}': choose from {', '.join(parts)}")
    metrics: dict[str, float | None] = {}
    tables: list[TitledTable] = []
    notes: list[str] = []
    found: list[PartFigures] = []
    for part in chosen or parts:
        click.echo(f"{name}: {part} …", err=True)
        measure = cast("MeasurePart", import_module(parts[part]).figures)
        one = measure(quick)
        found.append(one)
        metrics |= one.metrics
        tables.append(TitledTable(one.title, one.rows))
        notes += one.notes
    return Evaluation(
        name=name,
        kind=kind,
        metrics=metrics,
        rows=tables[0].rows,
        tables=tables[1:],
        notes=notes,
        charts=[chart for one in found for chart in one.charts],
        data="quick" if quick else "",
    )


def parts_argument(command: Callable[..., object]) -> Callable[..., object]:
    """`[PART]...`, the parts to measure."""
    return click.argument("chosen", nargs=-1, metavar="[PART]...")(command)
