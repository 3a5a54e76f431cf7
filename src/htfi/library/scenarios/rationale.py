"""The words of `htfi scenario`: prepared sentences filled from slots that code computed, and how figures are written.

The sentences hold no digit, as those of the rationale of a decision: every figure in the text is a slot's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from htfi.domain.time import format_ns
from htfi.forecasting.scenarios.effects import EventProbability, TransmissionChannel
from htfi.forecasting.scenarios.measures import LEVELS, ScenarioComparison, rank_positions
from htfi.narrative.rationale.units import bar_name, significant
from htfi.narrative.rationale.versions import CURRENT
from htfi.narrative.text import quote
from htfi.pipeline.scenarios.answers import ScenarioAnswer, ScenarioAnswers
from htfi.pipeline.scenarios.basis import ScenarioBasis
from htfi.pipeline.scenarios.next_forecast import NextForecast

SENTENCES = {
    "today": (
        "{origin}, as of {as_of}: {count} series of {interval}, {bars} ahead; dependence from {instants} instants. "
        "Without a scenario, the book ({gross} gross, {net} net) ends between {low} and {high} with {coverage} "
        "probability; "
        "VaR {var_level} {var}, ES {es_level} {es}."
    ),
    "moves": "Given moves: {moves}.",
    "more_moves": "Given moves: {moves}, and {num_more} more.",
    "carried": "Extended to {carried} other series by their past dependence on these.",
    "response": "From {moves}.",
    "reader": "{reader} reads {headline}.",
    "view_moving": "On {series}: {direction} by {size}, volatility {volatility}, confidence {confidence}: {words}.",
    "view_flat": "On {series}: no direction, volatility {volatility}, confidence {confidence}: {words}.",
    "other_role": (
        "In this headline {series} is {role}. A reader judges the news for another company, so no view on "
        "{series} is used."
    ),
    "unclear_role": "In this headline {series} is {role}: a view on it counts half.",
    "more_roles": "{num_more} more series have such a role; they are in the JSON.",
    "silent": "On {num_silent} of {num_read} series the reader has no view.",
    "spread": "Extended to {carried} series without a view, by their past dependence on these.",
    "unread": "No model read it: {why}.",
    "chance": "Chance of the book ending at {end} or {way}, by today's forecast: {chance}.",
    "chance_moves": "Chance of {moved} moving at least this far{together}: {chance}.",
    "book": (
        "The book's mean profit changes from {mean_before} to {mean_after}; VaR {var_level} from {var_before} "
        "to {var_after}, "
        "ES {es_level} from {es_before} to {es_after}."
    ),
    "certain": "The moves of all positions are given: the book ends at {mean_after}, {times} today's VaR {var_level}.",
    "certain_gain": "The moves of all positions are given: the book ends at {mean_after}.",
    "earned": "Weighted by the reader's track record ({weight}), its mean profit is {mean_earned}.",
    "most": "Largest contributions: {most}.",
    "after": (
        "After such a bar {series} would be {state}, and the forecast of the next {bars} would range from {low} "
        "to {high} "
        "with {coverage} probability, instead of {low_now} to {high_now}."
    ),
}
_UNITS = ((1e9, 1e9, "bn"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))  # from, in, written
MAX_MOVES = 6
MAX_VIEWS = 3


@dataclass(frozen=True, slots=True)
class FilledText:
    """A text, the template it was filled from (parts joined by '+') and its slots, part by part."""

    text: str
    template: str
    slots: tuple[Mapping[str, str], ...]


def scenario_rationale(
    ground: ScenarioBasis, answers: ScenarioAnswers, answer: ScenarioAnswer | None
) -> FilledText:
    """Why a scenario's figures are what they are; without one, what today's are."""
    parts = _today(ground, answers) if answer is None else _scenario(answers, answer)
    if answer is not None and answer.next_forecast is not None:
        parts.append(("after", _after(ground, answers, answer, answer.next_forecast)))
    text = " ".join(SENTENCES[name].format_map(slots) for name, slots in parts)
    return FilledText(text, "+".join(name for name, _ in parts), tuple(slots for _, slots in parts))


def _today(ground: ScenarioBasis, answers: ScenarioAnswers) -> list[tuple[str, dict[str, str]]]:
    today, before = answers.today, answers.book_before
    slots = {
        "origin": quote(ground.origin),
        "as_of": format_ns(ground.as_of_ns),
        "count": str(len(today.series)),
        "interval": ground.interval,
        "bars": bars(today.horizon, ground.interval),
        "instants": f"{today.num_instants:,}",
        "gross": size(answers.positions.gross, answers),
        "net": size(answers.positions.net, answers),
        "low": money(before.quantiles[LEVELS.index(0.05)], answers, signed=True),
        "high": money(before.quantiles[LEVELS.index(0.95)], answers, signed=True),
        "coverage": "90%",
        "var": money(before.var99, answers),
        "es": money(before.es975, answers),
        **_RISK_LEVELS,
    }
    return [("today", slots)]


_RISK_LEVELS = {"var_level": "99%", "es_level": "97.5%"}


def _scenario(answers: ScenarioAnswers, answer: ScenarioAnswer) -> list[tuple[str, dict[str, str]]]:
    ways = answer.ways
    parts: list[tuple[str, dict[str, str]]] = []
    if answer.views is not None:
        parts += _read(answer)
    elif TransmissionChannel.RESPONSE in ways:
        parts.append(("response", {"moves": "; ".join(answer.moves)}))
    elif answer.moves:
        shown = ", ".join(answer.moves[:MAX_MOVES])
        more = len(answer.moves) - MAX_MOVES
        parts.append(("more_moves" if more > 0 else "moves", {"moves": shown, "num_more": str(more)}))
    num_carried = sum(way is TransmissionChannel.DEPENDENCE for way in ways)
    if num_carried:
        parts.append(("spread" if answer.views is not None else "carried", {"carried": str(num_carried)}))
    return parts + _book(answers, answer, answer.full or answer.change)


def _after(
    ground: ScenarioBasis, answers: ScenarioAnswers, answer: ScenarioAnswer, after: NextForecast
) -> dict[str, str]:
    """Of the series that the scenario is most about."""
    change = answer.full or answer.change
    first = next(iter(rank_positions(change, answer.ways, answers.positions.portfolio.notionals != 0.0)), 0)
    now = answers.before[first]
    return {
        "series": answers.today.series[first],
        "state": after.regimes[first].value,
        "bars": bar_name(ground.interval),
        "low": simple(after.bands[first, 0]),
        "high": simple(after.bands[first, 1]),
        "coverage": "90%",
        "low_now": simple(now[LEVELS.index(0.05)]),
        "high_now": simple(now[LEVELS.index(0.95)]),
    }


def _read(answer: ScenarioAnswer) -> list[tuple[str, dict[str, str]]]:
    views = answer.views or {}
    speaking = {series: view for series, view in views.items() if view.confidence > 0.0}
    apart = _roles(answer)
    left_out = [series for series, role in answer.roles.items() if role.is_clear and not role.is_judged]
    if not speaking and len(left_out) == len(views):
        return apart
    if not speaking:
        why = next((view.words for view in views.values() if view.words), "") or "the reader finds no effect"
        return [("unread", {"why": why}), *apart]
    first = next(iter(speaking.values()))
    reader = CURRENT.view_slots(first, "")["reader"]
    parts: list[tuple[str, dict[str, str]]] = [("reader", {"reader": reader, "headline": answer.title})]
    largest = sorted(speaking, key=lambda series: -speaking[series].size_sigmas * speaking[series].confidence)
    for series in largest[:MAX_VIEWS]:
        slots = CURRENT.view_slots(speaking[series], series.rpartition("/")[0])
        parts.append(("view_moving" if "size" in slots else "view_flat", {"series": series, **slots}))
    num_silent = len(views) - len(speaking) - sum(series not in speaking for series in left_out)
    if num_silent:
        parts.append(("silent", {"num_silent": str(num_silent), "num_read": str(len(views))}))
    return parts + apart


def _roles(answer: ScenarioAnswer) -> list[tuple[str, dict[str, str]]]:
    """Of the series whose part in the headline keeps a view from them, or halves it."""
    apart = [(series, role) for series, role in answer.roles.items() if not role.is_judged]
    parts = [
        ("other_role" if role.is_clear else "unclear_role", {"series": series, "role": role.value})
        for series, role in apart[:MAX_VIEWS]
    ]
    if len(apart) > MAX_VIEWS:
        parts.append(("more_roles", {"num_more": str(len(apart) - MAX_VIEWS)}))
    return parts


def _book(
    answers: ScenarioAnswers, answer: ScenarioAnswer, change: ScenarioComparison
) -> list[tuple[str, dict[str, str]]]:
    before, after = change.portfolio_before, change.portfolio_after
    lost = after.mean < 0.0 < before.var99
    slots = {
        "mean_before": money(before.mean, answers, signed=True),
        "mean_after": money(after.mean, answers, signed=True),
        "var_before": money(before.var99, answers),
        "var_after": money(after.var99, answers),
        "es_before": money(before.es975, answers),
        "es_after": money(after.es975, answers),
        "times": f"{-after.mean / before.var99:.1f} times" if lost else "",
        **_RISK_LEVELS,
    }
    certain = after.deviation <= 1e-9 * max(answers.positions.gross, 1e-12)
    parts: list[tuple[str, dict[str, str]]] = [
        ("book" if not certain else "certain" if lost else "certain_gain", slots)
    ]
    parts += _chances(answers, answer, change)
    gains = [b - a for a, b in zip(before.means, after.means, strict=True)]
    order = sorted(range(len(gains)), key=lambda place: -abs(gains[place]))[:3]
    largest_moves = [
        f"{answers.today.series[place]} ({money(gains[place], answers, signed=True)})"
        for place in order
        if abs(gains[place]) > 1e-6 * answers.positions.gross
    ]
    if largest_moves:
        parts.append(("most", {"most": ", ".join(largest_moves)}))
    if answer.full is not None:
        mean = answer.change.portfolio_after.mean
        parts.append(
            ("earned", {"weight": percent(answer.weight), "mean_earned": money(mean, answers, signed=True)})
        )
    return parts


def _chances(
    answers: ScenarioAnswers, answer: ScenarioAnswer, change: ScenarioComparison
) -> list[tuple[str, dict[str, str]]]:
    """Of the book ending so, and of the moves that the scenario knows, each with what it is the chance of."""
    parts: list[tuple[str, dict[str, str]]] = []
    if change.probability is not None:
        end = change.portfolio_after.mean
        slots = {
            "end": money(end, answers, signed=True),
            "way": "more" if end > change.portfolio_before.mean else "less",
        }
        parts.append(("chance", {**slots, "chance": chance_words(change.probability)}))
    if answer.chance is not None:
        moved = known_moves(answer.ways)
        which = answers.today.series[moved[0]] if len(moved) == 1 else f"the {len(moved)} series"
        together = " together" if len(moved) > 1 else ""
        slots = {"moved": which, "together": together, "chance": chance_words(answer.chance)}
        parts.append(("chance_moves", slots))
    return parts


def known_moves(ways: Sequence[TransmissionChannel]) -> list[int]:
    """The places of the series that a scenario says the move of."""
    return [
        place
        for place, way in enumerate(ways)
        if way in (TransmissionChannel.SHOCKED, TransmissionChannel.FACTOR, TransmissionChannel.OWN_HISTORY)
    ]


def money(value: float, answers: ScenarioAnswers, *, signed: bool = False) -> str:
    """An amount of the book: in money with four digits ('−118.1k', '2.5M'), else as a share of it in percent."""
    if not answers.positions.in_money:
        return simple(value) if signed else minus(f"{100.0 * value:.2f}%".replace("-0.00%", "0.00%"))
    unit, mark = next(((unit, mark) for least, unit, mark in _UNITS if abs(value) >= least), (1.0, ""))
    amount = value / unit
    decimals = max(0, min(2, 3 - floor(log10(abs(amount))))) if abs(amount) >= 1e-2 else 2
    text = f"{amount:+.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    text = "0" if text in ("+0", "-0") else text
    return minus((text if signed else text.removeprefix("+")) + mark)


def size(value: float, answers: ScenarioAnswers) -> str:
    """Gross or net: an amount of money, or a share of the book without zeros at its end."""
    if answers.positions.in_money:
        return money(value, answers)
    return minus(f"{100.0 * value:.2f}".rstrip("0").rstrip(".") + "%")


def simple(value: float) -> str:
    """A fraction as a signed percentage; no sign where it rounds to nothing."""
    text = f"{100.0 * value:+.2f}%"
    return minus("0.00%" if text in ("+0.00%", "-0.00%") else text)


def percent(share: float) -> str:
    """A share 0–1 as whole percent."""
    return f"{100.0 * share:.0f}%"


def minus(text: str) -> str:
    return text.replace("-", "−")


def chance_words(chance: EventProbability) -> str:
    """'0.7% (29 of 4,000 scenarios, 3 of 500 past bars)', 'rarer than 1 in 4,000 (never in 4,000 scenarios, …)'."""
    draws = f"{chance.num_draws:,} scenarios"
    past = f"{chance.num_instants:,} past bars" if chance.num_instants else ""
    if chance.num:
        counted = f"{chance.num:,} of {draws}" + (f", {chance.num_past:,} of {past}" if past else "")
    elif chance.num_past:
        counted = f"never in {draws}, but in {chance.num_past:,} of {past}"
    else:
        counted = f"never in {draws}" + (f", nor in {past}" if past else "")
    return f"{chance_figure(chance)} ({counted})"


def chance_figure(chance: EventProbability | None) -> str:
    """'12%', '0.4%', 'about 1 in 2,000', 'rarer than 1 in 4,000': no digit that the count does not support.

    A dash where there is nothing to count.
    """
    if chance is None:
        return "–"
    if chance.share is None:
        return f"rarer than 1 in {chance.num_draws:,}"
    if chance.share >= 0.001:
        digits = 2 if chance.num >= 100 else 1
        return f"{float(f'{100.0 * chance.share:.{digits}g}'):g}%"
    return f"about 1 in {float(f'{1.0 / chance.share:.1g}'):,.0f}"


def bars(horizon: int, interval: str) -> str:
    """'1 day', '5 days', '22 bars of 5m'."""
    word = bar_name(interval)
    plain = word in ("day", "hour", "minute", "second")
    if horizon == 1:
        return f"1 {word}" if plain else f"one {word}"
    return f"{horizon} {word}s" if plain else f"{significant(horizon)} bars of {interval}"
