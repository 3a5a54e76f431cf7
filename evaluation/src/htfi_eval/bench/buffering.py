"""`htfi bench buffering`: what it saves to have a scheduled release's views read before it comes, and how often."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click

from htfi.apps.display.figures import report
from htfi_eval.bench.fed_decisions import (
    AnnouncementTiming,
    FedDecision,
    latest_fed_decisions,
    right_words,
    run,
)
from htfi_eval.bench.fed_headlines import texts_rows

SEED = 7
QUICK = 5
Row = dict[str, Any]


@click.command("buffering", short_help="Views read before a scheduled release, beside views read after it.")
@click.option("--quick", is_flag=True, help="A few releases: to see that it works, not to judge by.")
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of news texts to match as well."
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to FILE."
)
@click.option("--seed", default=SEED, show_default=True, help="Of the prices around the releases.")
def command(quick: bool, data: Path | None, json_file: Path | None, seed: int) -> None:
    """Measure the time from a scheduled release's headline to the first decision that weighs it.

    The scheduled Fed decisions of the embedded sample come in the middle of minute bars of three series, once with a
    calendar and once without, read by the shipped models on the same items. A hit is a release whose prepared views
    were served to every series; a wrong match is a view served for another outcome than was decided. Confirmed are the
    served views with whose direction the reading of the news itself, right after the release, agrees. With --data, the
    headlines of a news archive are matched to the same decisions.

    \b
    Examples:
      htfi bench buffering
      htfi bench buffering --data ../shared/data --json build/buffering.json
    """
    told = latest_fed_decisions(QUICK if quick else None)
    click.echo(f"{len(told)} releases without a calendar", err=True)
    plain = run(told, seed, buffered=False)
    click.echo(f"{len(told)} releases with a calendar", err=True)
    buffered = run(told, seed, buffered=True)
    rows = [_row(one, was, now) for one, was, now in zip(told, plain, buffered, strict=True)]
    figures = metrics(told, plain, buffered)
    notes: list[str] = []
    if data is not None:
        found, more, notes = texts_rows(data)
        rows += found
        figures |= more
    report("buffering", figures, rows, seed=seed, json_file=json_file, notes=notes)


def metrics(
    told: Sequence[FedDecision], plain: Sequence[AnnouncementTiming], buffered: Sequence[AnnouncementTiming]
) -> dict[str, float]:
    """Shares 0–1, times in milliseconds."""
    hits = [bool(now.served) for now in buffered]
    wrong = sum(
        any(words != right_words(one) for words in now.served)
        for one, now in zip(told, buffered, strict=True)
    )
    pairs = [(was.view_ms, now.view_ms) for was, now in zip(plain, buffered, strict=True) if now.served]
    amended = sum(now.num_amended for now in buffered)
    figures = {
        "hits": sum(hits) / len(told),
        "wrong_matches": wrong / len(told),
        "confirmed": sum(now.num_confirmed for now in buffered) / max(amended, 1),
        "confirmed_to_the_figure": sum(now.num_same for now in buffered) / max(amended, 1),
        "readings_ahead": sum(now.num_ahead for now in buffered) / len(told),
        "preparation_ms": median(now.ahead_ms for now in buffered),
    }
    if pairs:
        figures |= {
            "item_to_view_ms": median(was for was, _ in pairs),
            "item_to_view_buffered_ms": median(now for _, now in pairs),
            "saved_ms": median(was - now for was, now in pairs),
            "times_as_fast": median(was / now for was, now in pairs),
        }
    return figures


def _row(one: FedDecision, was: AnnouncementTiming, now: AnnouncementTiming) -> Row:
    served = set(now.served)
    return {
        "release": one.id,
        "headline": one.item.headline[:48],
        "outcome": one.key,
        "served": "no" if not served else "wrong" if served != {right_words(one)} else "yes",
        "read after ms": was.view_ms,
        "served in ms": now.view_ms,
        "saved ms": was.view_ms - now.view_ms if served else "",
        "confirmed": f"{now.num_confirmed} of {now.num_amended}" if now.num_amended else "",
        "readings ahead": now.num_ahead,
        "ahead ms": now.ahead_ms,
    }
