"""Tells what became of the news in a decision, in words: read, set aside, weighed, disputed. Apps show it.

Everything is taken from the record and derived from nothing else, so that two auditors read the same. Text from outside
is shown cleaned and between quotation marks; what was held back is named by its id, never quoted.
"""

from collections.abc import Sequence

import msgspec

from htfi.domain.decision import Decision, Part, View
from htfi.domain.news import Heard, Route, Scores, Screening
from htfi.narrative.audit_wording import Spell, overturned, told_wording
from htfi.narrative.merging import contradictions, part_weight
from htfi.narrative.rationale import MAX_WORDS_CHARS, reader_name, tell_view
from htfi.narrative.text import clean, quote
from htfi.narrative.words import move, move_unit, span

MAX_ITEMS = 12  # told one by one; of more only the number is
_MAX_ID_CHARS = 80
_MAX_REASON_CHARS = 160
READERS = {
    Route.TEMPLATE: "read by nobody",
    Route.ENCODER: "read by the encoder",
    Route.DRAFT: "read by the draft",
    Route.TARGET: "read by the target",
    Route.FRONTIER: "read by a frontier model",
}


class Section(msgspec.Struct, frozen=True):
    """Lines under a title: one answer of the audit."""

    title: str
    lines: tuple[str, ...]


def account(
    decision: Decision, first: Decision | None = None, spell: Spell | None = None
) -> tuple[Section, ...]:
    """The narrative of one decision: what was read and set aside, what moved the view, what was disputed.

    `first` is the provisional decision that this one amends, where there is one; `spell` turns a token into the words
    that its target means by it.
    """
    hearing, view = decision.hearing, decision.view
    considered = hearing.considered if hearing is not None else ()
    aside = hearing.set_aside if hearing is not None else ()
    sections = [
        Section("Suspicion", _suspicion(decision)),
        Section("What was read", _items(considered, decision.as_of_ns) or ("No news was known.",)),
        Section("What was set aside", _items(aside, decision.as_of_ns) or ("Nothing.",)),
    ]
    if view is not None:
        sections += [
            Section("What the view says", _view(view, decision)),
            Section("What moved it", _parts(view, decision.as_of_ns)),
            Section("Contradictions kept", _contradictions(view, decision.as_of_ns) or ("None.",)),
            Section("What it changed", _change(decision)),
            Section("Draft and target", _wording(decision, first, spell)),
        ]
    return tuple(sections)


def _suspicion(decision: Decision) -> tuple[str, ...]:
    plan, hearing = decision.plan, decision.hearing
    then = f", then {plan.then.value}" if plan.then is not None else ""
    rung = f"Rung {plan.rung.value}{then}: {_cut(plan.reason)}."
    cleared = _cut(hearing.cleared) if hearing is not None else ""
    ended = (f"Of late: {cleared}.",) if cleared else ()
    if hearing is None or not hearing.suspicion:
        return ("None.", *ended, rung)
    return (f"Suspected: {clean(hearing.suspicion, 3 * _MAX_REASON_CHARS)}.", *ended, rung)


def _items(items: Sequence[Heard], as_of_ns: int) -> tuple[str, ...]:
    lines = [_item(one, as_of_ns) for one in items[:MAX_ITEMS]]
    if len(items) > MAX_ITEMS:
        lines.append(f"And {len(items) - MAX_ITEMS} more.")
    return tuple(lines)


def _item(heard: Heard, as_of_ns: int) -> str:
    age = span(max(as_of_ns - heard.available_at_ns, 0))
    parts = [
        f"{name_in_words(heard.id)} of {name_in_words(heard.source)}, {age} earlier: {_screening(heard)}"
    ]
    if heard.num_alike > 1:
        parts.append(f"told {heard.num_alike} times so far")
    if heard.told_before:
        parts.append(f"first by {name_in_words(heard.told_before)}")
    if heard.scores is not None and heard.scores.encoder:
        parts.append(_scores(heard.scores))
    parts.append(f"{READERS[heard.route]}: {_cut(heard.why)}")
    return "; ".join(parts) + "."


def _screening(heard: Heard) -> str:
    reasons = ", ".join(_cut(reason) for reason in heard.reasons)
    because = f" ({reasons})" if reasons else ""
    match heard.verdict:
        case Screening.PASS:
            trusted = "" if heard.trust >= 1.0 else f", trusted {heard.trust:.0%}"
            return f"passed{trusted}{because}"
        case Screening.DISCOUNT:
            return f"discounted, trusted {heard.trust:.0%}{because}"
        case Screening.QUARANTINE:
            return f"in quarantine{because}"


def _scores(scores: Scores) -> str:
    return (
        f"sentiment {scores.sentiment:+.2f}, stance {scores.stance:+.2f}, {_cut(scores.event) or 'no event'} "
        f"{scores.event_confidence:.0%}, relevance {scores.relevance:.2f}, novelty {scores.novelty:.2f}"
    )


def _view(view: View, decision: Decision) -> tuple[str, ...]:
    if view.confidence <= 0.0:
        said = f": {quote(clean(view.words, MAX_WORDS_CHARS))}" if view.words else ""
        return (f"{reader_in_words(view.reader)} has no opinion{said}.", *_cites(view))
    age = decision.as_of_ns - view.as_of_ns
    when = "now" if age <= 0 else f"{span(age)} earlier"
    words = tell_view(view, decision.symbol)["words"]
    lines = [f"{reader_in_words(view.reader)}, {when}: {_opinion(view)}; {words}."]
    if view.prepared:
        lines.append(f"Prepared ahead: {_cut(view.prepared)}.")
    if view.provisional:
        lines.append("Provisional: an amendment is to follow.")
    return (*lines, *_cites(view))


def _cites(view: View) -> tuple[str, ...]:
    return (
        (f"It rests on {', '.join(map(name_in_words, view.cited))}.",)
        if view.cited
        else ("It cites nothing.",)
    )


def _parts(view: View, as_of_ns: int) -> tuple[str, ...]:
    if not view.parts:
        return ("One reading alone, trusted in full." if view.confidence > 0.0 else "Nothing.",)
    weights = [part_weight(part, as_of_ns) for part in view.parts]
    total = sum(weights)
    order = sorted(range(len(weights)), key=lambda place: (-weights[place], place))
    lines = [_part(view.parts[place], weights[place], total, as_of_ns) for place in order[:MAX_ITEMS]]
    if len(order) > MAX_ITEMS:
        rest = sum(weights[place] for place in order[MAX_ITEMS:])
        lines.append(f"{_share(rest, total)} of the weight: {len(order) - MAX_ITEMS} more readings.")
    return tuple(lines)


def _part(part: Part, weight: float, total: float, as_of_ns: int) -> str:
    cited = ", ".join(map(name_in_words, part.cited)) or "nothing named"
    return (
        f"{_share(weight, total)} of the weight: {reader_in_words(part.reader)} on {cited}, "
        f"{span(max(as_of_ns - part.as_of_ns, 0))} earlier: {_opinion(part)}; trusted {part.trust:.0%}, "
        f"counts {weight:.2f}."
    )


def _contradictions(view: View, as_of_ns: int) -> tuple[str, ...]:
    found = contradictions(view.parts, as_of_ns)
    lines = [_against(view.parts[one], view.parts[other]) for one, other in found[:MAX_ITEMS]]
    if len(found) > MAX_ITEMS:
        lines.append(f"And {len(found) - MAX_ITEMS} more.")
    return tuple(lines)


def _against(one: Part, other: Part) -> str:
    return f"{_told_by(one)} says {_way(one)}, {_told_by(other)} says {_way(other)}: both stand."


def _told_by(part: Part) -> str:
    return f"{reader_in_words(part.reader)} on {', '.join(map(name_in_words, part.cited)) or 'nothing named'}"


def _change(decision: Decision) -> tuple[str, ...]:
    forecast, tilt = decision.forecast, decision.forecast.tilt
    if tilt is None:
        return ("Nothing in the forecast.",)
    lines: list[str] = []
    for horizon, shift, stretch, weight in zip(
        forecast.horizons, tilt.shift, tilt.stretch, tilt.weight, strict=True
    ):
        moved = weight * shift
        ahead = f"{horizon} bar{'s' * (horizon != 1)}"
        lines.append(
            f"{ahead} ahead: weighed at {weight:.0%}, the median moves by {move(moved, move_unit(abs(moved)))} "
            f"and the band is {1.0 + weight * (stretch - 1.0):.2f} times as wide."
        )
    lines.append(
        f"Divergence {tilt.divergence:.2f}, more than in {int(100.0 * tilt.divergence_rank + 1e-9)}% of "
        f"{reader_in_words(tilt.narrator)}'s tilts before."
    )
    return tuple(lines)


def _wording(decision: Decision, first: Decision | None, spell: Spell | None) -> tuple[str, ...]:
    view = decision.view
    lines: list[str] = []
    if view is not None and view.wording is not None:
        lines += told_wording(view.wording, spell)
    elif view is not None and view.confidence > 0.0:
        earlier = view.as_of_ns < decision.as_of_ns
        lines.append("Worded for an earlier decision." if earlier else "No model of ours worded it here.")
    if first is not None:
        lines += overturned(first, decision, spell)
    return tuple(lines) or ("No model was asked.",)


def _opinion(of: View | Part) -> str:
    return f"{_way(of)}, volatility {of.volatility_multiplier:g}x, confidence {of.confidence:.0%}"


def _way(of: View | Part) -> str:
    if not of.direction:
        return "no direction"
    return f"{'up' if of.direction > 0.0 else 'down'} by {of.size_sigmas:g} sigma"


def _share(weight: float, total: float) -> str:
    return f"{weight / total:.0%}" if total > 0.0 else "0%"


def reader_in_words(reader: str) -> str:
    """Who read, without digests."""
    return reader_name(reader) or "a reader"


def name_in_words(name: str) -> str:
    """A name from outside, quoted."""
    return quote(clean(name, _MAX_ID_CHARS))


def _cut(text: str) -> str:
    return clean(text, _MAX_REASON_CHARS).rstrip(".")
