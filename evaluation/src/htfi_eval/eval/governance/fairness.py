"""Whether views move when only a name does, what the swap test costs, and whether bands hold alike for all groups."""

from collections.abc import Mapping, Sequence

import numpy as np

from htfi.domain.decision import Rung
from htfi.domain.errors import InvalidInput
from htfi.domain.governance import SwapMove
from htfi.governance.fairness.config import FairnessConfig
from htfi.governance.fairness.swap_test import num_moved
from htfi.narrative.name_swaps import SwapKind
from htfi.wiring.models.readers import open_readers
from htfi.wiring.news import open_neutral_reader, open_readers_of_items
from htfi.wiring.settings import load_settings, override
from htfi_eval.eval.governance.group_coverage import measure_coverage
from htfi_eval.eval.governance.neutral_accuracy import measure_accuracy
from htfi_eval.eval.governance.swap_cost import measure_cost
from htfi_eval.eval.governance.swap_lines import (
    OTHER_SOURCES,
    SwapLine,
    own_lines,
    staged_lines,
    with_unlisted_names,
)
from htfi_eval.eval.governance.swap_moves import (
    LineMoves,
    fact_moves_of,
    joined,
    model_moves_of,
    moved_interval,
    moved_share,
    released_moves,
)
from htfi_eval.eval.prices import STAGED
from htfi_eval.results import PartFigures

SEEDS = (7, 8)  # of what is drawn; figures differ by more than their size suggests


def figures(quick: bool) -> PartFigures:
    """Shares of views that a swap moves by more than noise, by reader. Raises: InvalidInput, IntegrityError."""
    settings = load_settings()
    _, facts = open_readers_of_items(settings)
    neutral = open_neutral_reader(settings)
    num = 60 if quick else 250  # of each kind and seed
    notes: list[str] = []
    lines = [line for seed in SEEDS for line in own_lines(facts.linker, num, seed)]
    others: list[SwapLine] = []
    try:
        lines += [line for seed in SEEDS for line in staged_lines(STAGED, facts.linker, num, seed)]
        others = staged_lines(STAGED, facts.linker, 4 * num, SEEDS[0], OTHER_SOURCES)
    except InvalidInput as error:
        notes.append(f"skipped: staged headlines: {error}")
    limit = FairnessConfig().max_move_sigmas
    moves = {
        "facts, asked for the company": fact_moves_of(lines, facts, asked=True),
        "facts, as in a run": fact_moves_of(lines, facts, asked=False),
        "facts with neutral names": fact_moves_of(lines, neutral, asked=True),
    }
    readers = open_readers(settings.models, settings.narrative, settings.decoding)
    shown = lines[:: max(len(lines) // (60 if quick else 240), 1)]
    for rung, name in ((Rung.EDGE, "draft"), (Rung.SPECULATIVE, "target")):
        if rung in readers:
            moves[name] = model_moves_of(shown, readers[rung], name)
            moves[f"{name} with neutral names"] = model_moves_of(shown, readers[rung], name, facts.linker)
    tested = FairnessConfig(test_views=True)
    unlisted = with_unlisted_names([*lines, *others], facts.linker, SEEDS[0])
    released = {
        "facts behind the swap test": released_moves(lines, neutral, tested),
        "the same, other sources": released_moves(others, neutral, tested),
        "the same, names in no list": released_moves(unlisted, neutral, tested),
    }
    rows = [
        row
        for reader, found in (moves | released).items()
        for kind in ("", *SwapKind)
        for row in swap_rows(reader, kind, found, limit)
    ]
    metrics: dict[str, float | None] = {
        f"swap_moved_share{suffix}": moved_share(found[reader], limit) if found.get(reader) else None
        for suffix, reader, found in (
            ("", "facts behind the swap test", released),
            ("_other_sources", "the same, other sources", released),
            ("_unlisted_names", "the same, names in no list", released),
            ("_asked", "facts, asked for the company", moves),
            ("_untested", "facts, as in a run", moves),
            ("_neutral", "facts with neutral names", moves),
            ("_draft", "draft", moves),
            ("_target", "target", moves),
            ("_neutral_draft", "draft with neutral names", moves),
            ("_neutral_target", "target with neutral names", moves),
        )
    }
    notes += [
        f"a view moves where direction · size · confidence changes by more than {limit:g} standard deviations of a bar",
        f"{len(lines):,} lines; draft and target read {len(shown):,} of them; {len(others):,} of other sources",
        *interval_notes(released, limit),
    ]
    for add in (add_coverage, add_cost, add_accuracy):
        try:
            add(metrics, rows, notes, quick)
        except InvalidInput as error:
            notes.append(f"skipped: {error}")
    return PartFigures(title="Views under swaps of names", metrics=metrics, rows=rows, notes=notes)


def add_coverage(
    metrics: dict[str, float | None], rows: list[dict[str, object]], notes: list[str], quick: bool
) -> None:
    """The widest gap of 90% coverage between two groups that is not noise. Raises: InvalidInput."""
    metrics["coverage_gap_groups"] = None
    found = measure_coverage(STAGED, quick=quick)
    metrics["coverage_gap_groups"] = found.audit.coverage_gap
    rows += found.rows
    notes.append(found.note)


def add_cost(
    metrics: dict[str, float | None], rows: list[dict[str, object]], notes: list[str], quick: bool
) -> None:
    """What the swap test adds to CRPS on staged news, as a share. Raises: InvalidInput, DependencyUnavailable."""
    del rows
    metrics["swap_test_crps_cost"] = None
    found = measure_cost(STAGED, quick=quick)
    metrics["swap_test_crps_cost"] = found.cost
    metrics["swap_test_withheld_share"] = found.num_withheld / len(found.days)
    notes.append(found.note)


def add_accuracy(
    metrics: dict[str, float | None], rows: list[dict[str, object]], notes: list[str], quick: bool
) -> None:
    """What is understood with neutral names, as `htfi eval reading` measures it. Raises: InvalidInput,
    DependencyUnavailable.
    """
    del rows, notes
    settings = load_settings()
    metrics |= measure_accuracy(
        STAGED,
        lambda names: open_neutral_reader(override(settings, "narrative", symbol_names=dict(names))),
        0,
        quick=quick,
    )


def swap_rows(reader: str, kind: str, moves: LineMoves, limit: float) -> list[dict[str, object]]:
    """The row of a reader and a kind of swap, '' for all; none where no line has such a swap."""
    found = [one for one in joined(moves) if kind in ("", one.kind)]
    return [swap_row(reader, kind or "all", found, limit)] if found else []


def interval_notes(moves: Mapping[str, LineMoves], limit: float) -> list[str]:
    """The share of each reader with its interval."""
    found: list[str] = []
    for reader, of_reader in moves.items():
        if of_reader:
            low, high = moved_interval(of_reader, limit)
            share, num = moved_share(of_reader, limit), len(joined(of_reader))
            found.append(
                f"{reader}: {share:.2%} of {num:,} swaps ({low:.2%} to {high:.2%}, lines drawn again)"
            )
    return found


def swap_row(reader: str, kind: str, moves: Sequence[SwapMove], limit: float) -> dict[str, object]:
    """A row of the table: how many swaps, how many moved, turned round, and the mean change, in standard deviations."""
    changes = np.array([one.after - one.before for one in moves])
    return {
        "reader": reader,
        "swap": kind,
        "swaps": len(moves),
        "moved": num_moved(moves, limit) / len(moves),
        "turned": sum(one.after * one.before < 0.0 for one in moves) / len(moves),
        "mean change": float(np.abs(changes).mean()),
        "bias": float(changes.mean()),
    }
