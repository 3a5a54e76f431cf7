"""An item understood, on one screen: its facts, and for each asset asked about the reading and the lines that spoke."""

import math
from collections.abc import Mapping, Sequence

from htfi.apps.display.statements import comparison_text
from htfi.apps.display.tables import console, print_facts, print_line, print_table
from htfi.domain.news_view import NewsView
from htfi.narrative.facts.effects import table
from htfi.narrative.facts.figures import Figure, FigureRole
from htfi.narrative.facts.policy.action import PolicyAction, PolicyExpectation
from htfi.narrative.facts.record import Modality, NewsFacts, Party, Tense
from htfi.narrative.facts.surprises import Surprise
from htfi.narrative.facts.wording import body_words
from htfi.narrative.understanding import Understanding


def show(group: Sequence[Understanding], views: Mapping[str, Sequence[NewsView]]) -> None:
    """The readings of one text; `views` by model are those for the assets asked about, in order."""
    first = group[0]
    print_line(first.screened.item.headline or first.item.text)
    print_facts({name: value for name, value in _facts(first).items() if value})
    columns = ("asset", "reading", "size", "confidence", "volatility", "why")
    print_table(columns, [_row(one) for one in group])
    if views:
        asked = [one for one in group if one.item.symbol]
        rows = [
            _view_row(who, one, view)
            for who, of_assets in views.items()
            for one, view in zip(asked, of_assets, strict=True)
        ]
        print_table(("model", "asset", "view", "size", "confidence", "facts agree", "reason"), rows)
    lines = sorted({number for one in group for number in one.reading.lines})
    effects = table()
    for number in lines:
        effect = effects[number - 1]
        print_line(f"line {number} of the table of effects: {effect.source}")
    if first.document is not None:
        print_line("beside the document before:")
        console().print(comparison_text(first.document.comparison), soft_wrap=True)


def _facts(one: Understanding) -> dict[str, str]:
    facts = one.facts
    held = "; ".join(f"{found.rule}: {found.detail}" for found in one.screened.findings)
    return {
        "screening": one.screened.verdict.value + (f" ({held})" if held else ""),
        "event": _event(facts),
        "tone": f"good {_percent((1 - facts.neutral + facts.tone) / 2)}, neutral {_percent(facts.neutral)}, "
        f"bad {_percent((1 - facts.neutral - facts.tone) / 2)}",
        "parties": "; ".join(map(_party, facts.parties)),
        "figures": "; ".join(_figure(facts.text, figure) for figure in facts.figures),
        "surprises": "; ".join(map(_surprise, facts.surprises)),
        "action": "" if facts.action is None else _action(facts.action),
        "economies": ", ".join(facts.regions),
        "body": "" if facts.body is None else body_words(facts.body.num_passages, facts.body.stance),
        "in words": one.words,
    }


def _event(facts: NewsFacts) -> str:
    told = "" if facts.modality is Modality.DID else f", {facts.modality.value}"
    when = "" if facts.tense is Tense.FACT else f", {facts.tense.value}"
    return f"{facts.event.value.replace('_', ' ')} ({_percent(facts.event_confidence)}){told}{when}"


def _party(party: Party) -> str:
    symbols = f" {'/'.join(party.symbols)}" if party.symbols else ""
    return f"{party.name}{symbols}: {party.role.value} {party.effect:+.2f}"


def _surprise(one: Surprise) -> str:
    size = "" if math.isnan(one.usual_sizes) else f" by {one.usual_sizes:+.1f} usual sizes"
    return f"{one.measure} {one.verdict.value}{size}"


def _action(action: PolicyAction) -> str:
    size = "" if not action.size_bp else f" by {action.size_bp} bp"
    level = ""
    if action.low is not None and action.high is not None:
        level = (
            f" to {action.high:g}%" if action.low == action.high else f" to {action.low:g}–{action.high:g}%"
        )
    expected = "" if action.expectation is PolicyExpectation.UNKNOWN else f", {action.expectation.value}"
    bank = action.bank.upper() or "a central bank"
    return f"{bank} {action.modality.value} {action.move.value}: {action.instrument.value}{size}{level}{expected}"


def _figure(text: str, figure: Figure) -> str:
    role = "" if figure.role is FigureRole.NONE else f" ({figure.role.value})"
    return text[figure.start : figure.end].strip() + role


def _row(one: Understanding) -> tuple[str, ...]:
    reading = one.reading
    asset = f"{one.item.symbol or one.item.name or 'its subject'} ({reading.asset.value.replace('_', ' ')})"
    if not one.speaks:
        return asset, "nothing", "", "", "", one.why_silent
    lines = "line " + ", ".join(map(str, reading.lines))
    role = f"{reading.role.value}, " if reading.role is not None else ""
    side = "up" if reading.direction > 0 else "down"
    return (
        asset,
        side,
        f"{reading.size_sigmas:.1f}σ",
        _percent(reading.confidence),
        f"{reading.volatility:.1f}×",
        role + lines,
    )


def _view_row(who: str, one: Understanding, view: NewsView) -> tuple[str, ...]:
    """A model's view, and how far the facts support it: what they do not support hardly counts."""
    side = "up" if view.direction > 0.0 else "down" if view.direction < 0.0 else "none"
    sign = one.reading.direction if one.speaks else 0
    agrees = (
        ""
        if not view.direction
        else "yes"
        if sign * view.direction > 0.0
        else "no"
        if sign
        else "unsupported"
    )
    size = f"{view.size_sigmas:.1f}σ" if view.direction else ""
    words = view.words.replace("{symbol}", one.item.symbol)
    return who, one.item.symbol, side, size, _percent(view.confidence), agrees, words


def _percent(share: float) -> str:
    return f"{round(100 * share)}%"
