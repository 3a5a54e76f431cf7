"""How `htfi scenario` puts its answers on a terminal: the book, each scenario beside today, the batch compared."""

import textwrap
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from htfi.apps.display.drawing import MUTED, printable, truncate_end
from htfi.forecasting.scenarios.measures import LEVELS, PortfolioFigures, ScenarioComparison, rank_positions
from htfi.library.scenarios.rationale import chance_figure, money, scenario_rationale, simple, size
from htfi.pipeline.scenarios.answers import ScenarioAnswer, ScenarioAnswers
from htfi.pipeline.scenarios.basis import ScenarioBasis

MAX_POSITIONS = 12
MAX_NAME = 24
_UP, _DOWN = "#46b17b", "#ef5350"
_LOW, _MIDDLE, _HIGH = LEVELS.index(0.05), LEVELS.index(0.5), LEVELS.index(0.95)


def answer_lines(ground: ScenarioBasis, answers: ScenarioAnswers, width: int) -> list[RenderableType]:
    """What to print, in order."""
    lines: list[RenderableType] = [Text(), *_head(ground, answers, width), *_notes(answers.notes, width)]
    for answer in answers.answers:
        lines += [Text(), *_scenario(ground, answers, answer, width)]
    if len(answers.answers) > 1:
        lines += [Text(), *_compared(answers, width)]
    return lines


def _head(ground: ScenarioBasis, answers: ScenarioAnswers, width: int) -> list[Text]:
    return _quiet(scenario_rationale(ground, answers, None).text, width)


def _notes(notes: Sequence[str], width: int) -> list[Text]:
    return [line for note in notes for line in _quiet(f"note: {note}", width)]


def _scenario(
    ground: ScenarioBasis, answers: ScenarioAnswers, answer: ScenarioAnswer, width: int
) -> list[RenderableType]:
    kind = f" {answer.asked.kind.value} "
    title = textwrap.wrap(printable(answer.title), max(width - len(kind) - 2, 20))
    lines: list[RenderableType] = [Text(kind, "reverse").append(f" {title[0]}", "bold not reverse")]
    lines += [Text(f" {line}", "bold") for line in title[1:]]
    why = scenario_rationale(ground, answers, answer).text
    lines += [Text(f" {line}") for line in textwrap.wrap(printable(why), width - 2)]
    lines += _positions(answers, answer, width)
    return [*lines, *_notes(answer.notes, width)]


def _positions(answers: ScenarioAnswers, answer: ScenarioAnswer, width: int) -> list[RenderableType]:
    """Each position and the book: today's band and the scenario's; a reader's at full weight as well.

    Where the columns do not fit side by side, a row has two lines: how a series was reached stands under its name,
    today's band under the scenario's.
    """
    comparison = answer.full or answer.change
    order = shown_places(answers, answer)
    rows = [_position_row(answers, answer, comparison, place) for place in order[:MAX_POSITIONS]]
    rows += [_book_row(name, change, answers) for name, change in _books(answer)]
    names = ("position", "holding", "today 5% … 95%", "then 5% … 95%", "median", "profit", "reached")
    table = _table(names, ("position", "reached"), rows)
    if _is_wider(table, width):
        stacked = [(_over(name, reached), holding, _over(then, today), median, gain)
                   for name, holding, today, then, median, gain, reached in rows]  # fmt: skip
        heads = ("position", "holding", "5% … 95% then, today", "median", "profit")
        table = _table(heads, ("position",), stacked)
    lines: list[RenderableType] = [table]
    if len(order) > MAX_POSITIONS:
        lines += _quiet(f"{len(order) - MAX_POSITIONS:,} more positions are in the output of --json", width)
    for name, change in _books(answer):
        before, after = change.portfolio_before, change.portfolio_after
        var, es = (f"{money(was, answers)} → {money(now, answers)}"
                   for was, now in ((before.var99, after.var99), (before.es975, after.es975)))  # fmt: skip
        lines += _quiet(f"{name}: VaR 99% {var}, ES 97.5% {es}", width)
    gross, net = (size(value, answers) for value in (answers.positions.gross, answers.positions.net))
    return [*lines, *_quiet(f"holdings: gross {gross}, net {net}; profit: change of the mean", width)]


def _position_row(
    answers: ScenarioAnswers, answer: ScenarioAnswer, comparison: ScenarioComparison, place: int
) -> tuple[Text, ...]:
    after = comparison.after[place]
    gain = comparison.portfolio_after.means[place] - comparison.portfolio_before.means[place]
    return (
        Text(truncate_end(answers.today.series[place], MAX_NAME)),
        Text(money(answers.positions.portfolio.notionals[place], answers)),
        Text(_band(comparison.before[place])),
        Text(_band(after)),
        _signed(simple(after[_MIDDLE]), after[_MIDDLE]),
        _signed(money(gain, answers, signed=True), gain),
        Text(answer.ways[place].value),
    )


def _books(answer: ScenarioAnswer) -> list[tuple[str, ScenarioComparison]]:
    if answer.full is None:
        return [("book", answer.change)]
    return [("book, reader right", answer.full), ("book, earned weight", answer.change)]


def _book_row(name: str, change: ScenarioComparison, answers: ScenarioAnswers) -> tuple[Text, ...]:
    before, after = change.portfolio_before, change.portfolio_after
    gain = after.mean - before.mean
    return (
        Text(name, "bold"),
        Text(f"net {size(answers.positions.net, answers)}"),
        Text(_amounts(before.quantiles, answers)),
        Text(_amounts(after.quantiles, answers)),
        _signed(money(after.quantiles[_MIDDLE], answers, signed=True), after.quantiles[_MIDDLE]),
        _signed(money(gain, answers, signed=True), gain),
        Text(),
    )


def _compared(answers: ScenarioAnswers, width: int) -> list[RenderableType]:
    """The batch: one row a scenario, worst for the book first."""
    today = answers.book_before
    rows = [_batch_row("today", None, today, "", answers)]
    for answer in sorted(
        answers.answers, key=lambda answer: (answer.full or answer.change).portfolio_after.mean
    ):
        change = answer.full or answer.change
        after = change.portfolio_after
        gains = [b - a for a, b in zip(change.portfolio_before.means, after.means, strict=True)]
        worst = min(range(len(gains)), key=gains.__getitem__)
        hit = "–"
        if gains[worst] < 0.0:
            hit = f"{truncate_end(answers.today.series[worst], MAX_NAME)} {money(gains[worst], answers, signed=True)}"
        rows.append(_batch_row(answer.asked.name or answer.title, change, after, hit, answers))
    title = " all scenarios, worst for the book first"
    names = ("scenario", "chance", "book", "5% … 95%", "VaR 99%", "ES 97.5%", "hit hardest")
    text_width = max(20, width - 100)
    folded = [(Text("\n".join(textwrap.wrap(row[0].plain, text_width))), *row[1:]) for row in rows]
    table = _table(names, ("scenario", "hit hardest"), folded, title)
    lines: list[RenderableType] = [table]
    if _is_wider(table, width):
        lines = [Text(title, "italic"), *(line for row in rows for line in _batch_lines(row, width))]
    note = (
        f"chance: of the book ending at least this far, counted in {len(answers.today.returns):,} scenarios of today's "
        "forecast"
    )
    return [*lines, *_quiet(note, width)]


def _batch_lines(row: Sequence[Text], width: int) -> list[Text]:
    """A row of the batch where its columns do not fit: the scenario, and what it does in a paragraph under it."""
    name, likely, book, band, var, es, hit = (cell.plain for cell in row)
    figures = f"book {book} ({band}), VaR 99% {var}, ES 97.5% {es}"
    figures += f"; chance {likely}" if likely else ""
    figures += f"; hit hardest: {hit}" if hit else ""
    head = [Text(f" {line}", "bold") for line in textwrap.wrap(name, width - 2)]
    return [*head, *(Text(f"   {line}") for line in textwrap.wrap(figures, width - 4))]


def _batch_row(
    name: str, change: ScenarioComparison | None, book: PortfolioFigures, hit: str, answers: ScenarioAnswers
) -> tuple[Text, ...]:
    return (
        Text(printable(name)),
        Text(chance_figure(change.probability) if change else "", MUTED),
        _signed(money(book.mean, answers, signed=True), book.mean),
        Text(_amounts(book.quantiles, answers)),
        Text(money(book.var99, answers)),
        Text(money(book.es975, answers)),
        Text(hit),
    )


def _table(
    names: Sequence[str], left: Sequence[str], rows: Sequence[Sequence[Text]], title: str = ""
) -> Table:
    table = Table(
        title=title or None,
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style=MUTED,
        padding=(0, 2, 0, 1),
    )
    for name in names:
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _is_wider(table: Table, width: int) -> bool:
    """Whether a table's columns, uncut, take more than `width`."""
    console = Console(width=1_000)
    return console.measure(table).maximum > width


def _over(upper: Text, lower: Text) -> Text:
    """Two cells as the lines of one."""
    return Text("\n").join([upper, Text.assemble(lower, style=MUTED)]) if lower.plain else upper


def _quiet(text: str, width: int) -> list[Text]:
    return [Text(f" {line}", MUTED) for line in textwrap.wrap(printable(text), width - 2)]


def shown_places(answers: ScenarioAnswers, answer: ScenarioAnswer) -> list[int]:
    """Positions, and what the scenario moves, by what the scenario does to the book through them."""
    return rank_positions(
        answer.full or answer.change, answer.ways, answers.positions.portfolio.notionals != 0.0
    )


def _band(row: Sequence[float]) -> str:
    return f"{simple(row[_LOW])} … {simple(row[_HIGH])}"


def _amounts(quantiles: Sequence[float], answers: ScenarioAnswers) -> str:
    return " … ".join(money(quantiles[place], answers, signed=True) for place in (_LOW, _HIGH))


def _signed(text: str, value: float) -> Text:
    return Text(text, _UP if value > 0.0 else _DOWN if value < 0.0 else "")
