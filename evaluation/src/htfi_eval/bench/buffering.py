"""`htfi bench buffering`: the time saved by reading views before a scheduled announcement, and how often that works.

With `--data` it also matches the headlines of a news archive to the Fed's decisions. The folder may hold
text_price/reuters_news_2006_2013.parquet (published_at, headline, lead), for evaluation only, and
central_bank/fomc_communications_1994_2024.parquet (release_date, type, text), the bank's own statements.
"""

from bisect import bisect_left
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.narrative.calendar.announcements import Announcement, AnnouncementKind, rate_key
from htfi.narrative.calendar.prefetching import item_outcome
from htfi_eval.bench.fed_decisions import (
    AnnouncementTiming,
    FedDecision,
    latest_fed_decisions,
    right_words,
    run,
    sample_policy_rates,
)
from htfi_eval.commands import figures_options, quick_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

NEWS = "text_price/reuters_news_2006_2013.parquet"
STATEMENTS = "central_bank/fomc_communications_1994_2024.parquet"
WINDOW_NS = 6 * 3_600 * NS_PER_S  # times of the archive are those of the last update
FED_ANNOUNCEMENT = Announcement("fomc", AnnouncementKind.RATE, 0, "fed")
FIRST_LEVEL = 5.25  # percent, June 2006 to September 2007; the sample's rates cover 2007 to 2009
Row = dict[str, Any]
Columns = dict[str, NDArray[Any]]
Judged = tuple[
    int, int, int, int
]  # texts, decisions in their time, decisions stated correctly, texts that state another outcome


def texts_rows(folder: Path) -> tuple[list[Row], dict[str, float], list[str]]:
    """Rows of the table, metrics and notes. Raises: InvalidInput where the folder has neither set."""
    rates = sample_policy_rates()
    rows: list[Row] = []
    figures: dict[str, float] = {}
    for name, path, judge in (("headlines", NEWS, _headlines), ("statements", STATEMENTS, _statements)):
        file = folder / path
        if not file.is_file():
            continue
        table = _columns(file)
        num, num_decisions, hits, wrong = judge(table, rates)
        rows.append(
            {
                "announcement": f"{name} of {file.name}",
                "headline": f"{num:,} texts, {num_decisions} decisions",
                "served": hits,
            }
        )
        figures |= {f"{name}_hits": hits / max(num_decisions, 1), f"{name}_wrong": float(wrong)}
    if not rows:
        raise InvalidInput(
            f"{folder} holds neither {NEWS} nor {STATEMENTS}: name a folder that does with --data"
        )
    return rows, figures, ["An archive's hits: decisions that at least one of its texts states correctly."]


def _columns(file: Path) -> Columns:
    try:
        table: Any = import_module("pyarrow.parquet").read_table(file)
    except OSError as error:
        why = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise DependencyUnavailable(f"{file} {why}: check the folder named by --data") from error
    return {name: table[name].to_numpy() for name in table.column_names}


def _level_before(rates: list[tuple[int, float]], at_ns: int) -> float:
    place = bisect_left(rates, (at_ns, 0.0))
    return rates[place - 1][1] if place else FIRST_LEVEL


def _headlines(table: Columns, rates: list[tuple[int, float]]) -> Judged:
    matched: set[int] = set()
    wrong = 0
    times: list[int] = table["published_at"].astype("datetime64[ns]").astype(np.int64).tolist()
    for headline, lead, at_ns in zip(table["headline"], table["lead"], times, strict=True):
        place = bisect_left(rates, (at_ns, 9e9)) - 1
        decided_ns, now = rates[place] if place >= 0 else (0, FIRST_LEVEL)
        before = _level_before(rates, decided_ns if at_ns - decided_ns < NS_PER_DAY else at_ns)
        item = News(at_ns, at_ns, "archive", 1, "n", headline or "", body=lead or "")
        key = item_outcome(item, FED_ANNOUNCEMENT, before).key
        is_right = key == rate_key(round(100.0 * (now - before)))
        wrong += key is not None and not is_right
        if is_right and at_ns - decided_ns <= WINDOW_NS:
            matched.add(decided_ns)
    num = sum(min(times) <= at_ns <= max(times) for at_ns, _ in rates)
    return len(times), num, len(matched), wrong


def _statements(table: Columns, rates: list[tuple[int, float]]) -> Judged:
    """The same for the bank's own statements of the years that the sample covers."""
    by_day = {at_ns // NS_PER_DAY: (at_ns, value) for at_ns, value in rates}
    num = hits = wrong = 0
    days: list[int] = table["release_date"].astype("datetime64[D]").astype(np.int64).tolist()
    for kind, day, text in zip(table["type"], days, table["text"], strict=True):
        if kind != "statement" or day not in by_day:
            continue
        at_ns, value = by_day[day]
        before = _level_before(rates, at_ns)
        key = item_outcome(
            News(at_ns, at_ns, "archive", 1, "n", "FOMC statement", body=text or ""), FED_ANNOUNCEMENT, before
        ).key
        right = rate_key(round(100.0 * (value - before)))
        num += 1
        hits += key == right
        wrong += key is not None and key != right
    return num, num, hits, wrong


SEED = 7
QUICK = 5


@click.command("buffering", short_help="Views read before a scheduled announcement, and after it.")
@quick_option
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of news texts to match to the decisions.",
)
@figures_options
@click.option("--seed", default=SEED, show_default=True, help="Seed of the prices around the announcements.")
def command(
    quick: bool, data: Path | None, json_file: Path | None, history_file: Path | None, seed: int
) -> None:
    """Measure the time from a scheduled announcement's headline to the first decision that uses it.

    The Fed decisions of the embedded sample are announced in the middle of minute bars of three series, once with a
    calendar and once without; the shipped models read the same items. A hit is an announcement whose prepared views
    were served to every series. A wrong match is a view served for another outcome than the one announced. A served
    view is confirmed when the reading of the news itself, right after the announcement, has the same direction.

    \b
    Examples:
      htfi bench buffering
      htfi bench buffering --data ../shared/data --json build/buffering.json
    """
    decisions = latest_fed_decisions(QUICK if quick else None)
    click.echo(f"{len(decisions)} announcements without a calendar", err=True)
    plain = run(decisions, seed, buffered=False)
    click.echo(f"{len(decisions)} announcements with a calendar", err=True)
    buffered = run(decisions, seed, buffered=True)
    rows = [_row(one, was, now) for one, was, now in zip(decisions, plain, buffered, strict=True)]
    figures = metrics(decisions, plain, buffered)
    notes: list[str] = []
    if data is not None:
        found, more, notes = texts_rows(data)
        rows += found
        figures |= more
    result = Evaluation(
        name="buffering", kind="bench", metrics=dict(figures), rows=rows, notes=notes, seed=seed
    )
    write_outputs(result, json_file=json_file, history_file=history_file)


def metrics(
    decisions: Sequence[FedDecision],
    plain: Sequence[AnnouncementTiming],
    buffered: Sequence[AnnouncementTiming],
) -> dict[str, float]:
    """Shares 0–1, times in milliseconds."""
    hits = [bool(now.served) for now in buffered]
    wrong = sum(
        any(words != right_words(one) for words in now.served)
        for one, now in zip(decisions, buffered, strict=True)
    )
    pairs = [(was.view_ms, now.view_ms) for was, now in zip(plain, buffered, strict=True) if now.served]
    amended = sum(now.num_amended for now in buffered)
    figures = {
        "hits": sum(hits) / len(decisions),
        "wrong_matches": wrong / len(decisions),
        "confirmed": sum(now.num_confirmed for now in buffered) / max(amended, 1),
        "confirmed_to_the_figure": sum(now.num_same for now in buffered) / max(amended, 1),
        "readings_ahead": sum(now.num_ahead for now in buffered) / len(decisions),
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
        "announcement": one.id,
        "headline": one.item.headline,
        "outcome": one.key,
        "served": "no" if not served else "wrong" if served != {right_words(one)} else "yes",
        "read after, ms": was.view_ms,
        "prepared, ms": now.view_ms,
        "saved, ms": was.view_ms - now.view_ms if served else "",
        "confirmed": f"{now.num_confirmed} of {now.num_amended}" if now.num_amended else "",
        "readings before": now.num_ahead,
        "before, ms": now.ahead_ms,
    }
