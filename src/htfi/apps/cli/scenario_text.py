"""How `htfi scenario` puts its answers on a terminal: the book, each scenario beside today, the batch compared."""

import textwrap
from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from htfi.apps.cli.scenario_words import chance, money, rationale, simple
from htfi.apps.cli.view_text import QUIET, clip, printable
from htfi.forecasting.scenarios.measures import LEVELS, Change, prominent
from htfi.wiring.scenario import Ground
from htfi.wiring.scenario_answers import Answer, Answers

MAX_POSITIONS = 12
_UP, _DOWN = "#46b17b", "#ef5350"
_LOW, _MIDDLE, _HIGH = LEVELS.index(0.05), LEVELS.index(0.5), LEVELS.index(0.95)


def answer_lines(ground: Ground, answers: Answers, width: int) -> list[RenderableType]:
    """What to print, in order."""
    lines: list[RenderableType] = [Text(), _head(ground, answers), *_notes(answers.notes, width)]
    for answer in answers.answers:
        lines += [Text(), *_scenario(ground, answers, answer, width)]
    if len(answers.answers) > 1:
        lines += [Text(), _compared(answers, width)]
    return lines


def _head(ground: Ground, answers: Answers) -> Text:
    told = rationale(ground, answers, None).text
    return Text(f" {printable(told)}", QUIET)


def _notes(notes: Sequence[str], width: int) -> list[Text]:
    return [Text(line, QUIET) for note in notes for line in textwrap.wrap(f" note: {printable(note)}", width)]


def _scenario(ground: Ground, answers: Answers, answer: Answer, width: int) -> list[RenderableType]:
    lines: list[RenderableType] = [
        Text(f" {answer.asked.kind.value} ", "reverse").append(
            f" {printable(answer.title)}", "bold not reverse"
        )
    ]
    why = rationale(ground, answers, answer).text
    lines += [Text(f" {line}") for line in textwrap.wrap(printable(why), width - 2)]
    lines.append(_positions(answers, answer))
    return [*lines, *_notes(answer.notes, width)]


def _positions(answers: Answers, answer: Answer) -> Table:
    """Each position and the book: today's band and the scenario's; a reader's at full weight as well."""
    table = Table(box=None, pad_edge=False, header_style=QUIET, padding=(0, 2, 0, 1))
    for name, side in (
        ("position", "left"),
        ("holding", "right"),
        ("today 5% … 95%", "right"),
        ("then 5% … 95%", "right"),
        ("median", "right"),
        ("profit", "right"),
        ("reached", "left"),
    ):
        table.add_column(name, justify=side, no_wrap=True)  # pyright: ignore[reportArgumentType]
    told = answer.full or answer.change
    holdings = answers.positions.book.notionals
    order = shown_places(answers, answer)
    for place in order[:MAX_POSITIONS]:
        before, after = told.before[place], told.after[place]
        gain = told.book_after.means[place] - told.book_before.means[place]
        table.add_row(
            clip(answers.today.series[place], 24),
            money(holdings[place], answers),
            _band(before),
            _band(after),
            _signed(simple(after[_MIDDLE]), after[_MIDDLE]),
            _signed(money(gain, answers, signed=True), gain),
            answer.ways[place].value,
        )
    if len(order) > MAX_POSITIONS:
        table.add_row(Text(f"{len(order) - MAX_POSITIONS} more in --json", QUIET))
    for name, change in _books(answer):
        table.add_row(*_book_row(name, change, answers))
    return table


def _books(answer: Answer) -> list[tuple[str, Change]]:
    if answer.full is None:
        return [("book", answer.change)]
    return [("book, if the reader is right", answer.full), ("book, at earned weight", answer.change)]


def _book_row(name: str, change: Change, answers: Answers) -> list[RenderableType]:
    before, after = change.book_before, change.book_after
    gain = after.mean - before.mean
    risk = f"VaR 99% {money(before.var99, answers)} → {money(after.var99, answers)}"
    return [
        Text(name, "bold"),
        money(answers.positions.net, answers),
        _amounts(before.quantiles, answers),
        _amounts(after.quantiles, answers),
        _signed(money(after.quantiles[_MIDDLE], answers, signed=True), after.quantiles[_MIDDLE]),
        _signed(money(gain, answers, signed=True), gain),
        risk,
    ]


def _compared(answers: Answers, width: int) -> Table:
    """The batch: one row a scenario, worst for the book first."""
    table = Table(
        title=" the batch, worst for the book first", title_justify="left", box=None, header_style=QUIET
    )
    for name in ("scenario", "chance", "book", "5% … 95%", "VaR 99%", "ES 97.5%", "hit hardest"):
        table.add_column(
            name, justify="left" if name in ("scenario", "hit hardest") else "right", no_wrap=True
        )
    today = answers.book_before
    table.add_row(
        *_batch_row("today", "", today.mean, today.quantiles, today.var99, today.es975, "", answers)
    )
    for answer in sorted(answers.answers, key=lambda answer: (answer.full or answer.change).book_after.mean):
        change = answer.full or answer.change
        after = change.book_after
        gains = [b - a for a, b in zip(change.book_before.means, after.means, strict=True)]
        worst = min(range(len(gains)), key=gains.__getitem__)
        hit = (
            f"{answers.today.series[worst]} {money(gains[worst], answers, signed=True)}"
            if gains[worst] < 0.0
            else "–"
        )
        name = clip(answer.asked.name or answer.title, max(20, width - 96))
        table.add_row(
            *_batch_row(
                name, chance(answer), after.mean, after.quantiles, after.var99, after.es975, hit, answers
            )
        )
    return table


def _batch_row(
    name: str,
    likely: str,
    mean: float,
    quantiles: Sequence[float],
    var99: float,
    es975: float,
    hit: str,
    answers: Answers,
) -> list[RenderableType]:
    return [
        name,
        Text(likely, QUIET),
        _signed(money(mean, answers, signed=True), mean),
        _amounts(quantiles, answers),
        money(var99, answers),
        money(es975, answers),
        clip(hit, 30),
    ]


def shown_places(answers: Answers, answer: Answer) -> list[int]:
    """Positions, and what was told to move, by what the scenario does to the book through them."""
    return prominent(answer.full or answer.change, answer.ways, answers.positions.book.notionals != 0.0)


def _band(row: Sequence[float]) -> str:
    return f"{simple(row[_LOW])} … {simple(row[_HIGH])}"


def _amounts(quantiles: Sequence[float], answers: Answers) -> str:
    return " … ".join(money(quantiles[place], answers, signed=True) for place in (_LOW, _HIGH))


def _signed(text: str, value: float) -> Text:
    return Text(text, _UP if value > 0.0 else _DOWN if value < 0.0 else "")
