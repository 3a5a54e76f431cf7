"""Tells where a draft and its target differed, from recorded rounds and tokens. `audit` puts it into its account.

Tells what became of the news in a decision, in words: read, set aside, weighed, disputed. Apps show it.

Everything is taken from the record and derived from nothing else, so that two auditors read the same. Text from outside
is shown cleaned and between quotation marks; what was held back is named by its id, never quoted.
"""

from collections.abc import Callable, Sequence

import msgspec

from htfi.domain.decision import Decision, GenerationTrace, NewsView, ViewPart
from htfi.domain.generation import DraftRound
from htfi.domain.news import NewsItemAudit, NewsScores, Route, Screening
from htfi.narrative.merging import find_contradictions, part_weight
from htfi.narrative.rationale.units import duration_words, move_unit, move_words
from htfi.narrative.rationale.writer import MAX_READER_CHARS, MAX_WORDS_CHARS, reader_name, view_slots
from htfi.narrative.text import clean, quote

TokenSpeller = Callable[[int], str]  # a token in words
MAX_LISTED_DISPUTES = 12  # places where they differed, told one by one
_NUM_TOKENS_SHOWN = 4  # tokens told of either side where two answers part
_MAX_PIECE_CHARS = 24


def generation_lines(wording: GenerationTrace, spell: TokenSpeller | None) -> list[str]:
    """Who wrote, how much of it was drafted and stood, and each place where the target said otherwise."""
    target, draft = _model_name(wording.target), _model_name(wording.draft)
    if wording.paths:
        num = len(wording.paths)
        same = sum(path == wording.tokens for path in wording.paths)
        return [
            f"{target} answered {num} times, drawn by chance; the answer that is told came {same} of them."
        ]
    if wording.num_settled >= 0:
        rest = len(wording.tokens) - wording.num_settled
        lines = [
            f"{target} settled {wording.num_settled} of {len(wording.tokens)} tokens, {draft or 'the draft'} wrote the "
            f"other {rest}."
        ]
    else:
        lines = [f"{target} settled all {len(wording.tokens)} tokens."]
    num_drafted = sum(len(one.drafted) for one in wording.rounds)
    if not num_drafted:
        return [*lines, "Nothing was drafted."]
    num_stood = sum(len(one.accepted) for one in wording.rounds)
    lines.append(f"{num_drafted} tokens were drafted by {draft or wording.strategy}, {num_stood} stood.")
    return lines + _disputes(wording.rounds, spell)


def _disputes(rounds: Sequence[DraftRound], spell: TokenSpeller | None) -> list[str]:
    found = [
        (turn, guesses, one.token)
        for turn, one in enumerate(rounds, 1)
        if one.token >= 0 and (guesses := _refused(one))
    ]
    if not found:
        return ["Nowhere did the target say otherwise."]
    lines = [
        f"Round {turn}: drafted {' or '.join(_piece(guess, spell) for guess in guesses)}, the target said "
        f"{_piece(token, spell)}."
        for turn, guesses, token in found[:MAX_LISTED_DISPUTES]
    ]
    if len(found) > MAX_LISTED_DISPUTES:
        lines.append(f"And {len(found) - MAX_LISTED_DISPUTES} places more.")
    return lines


def _refused(one: DraftRound) -> list[int]:
    """The guesses for the first place at which none stood; empty where all that was read stood."""
    if not one.parents:
        return list(one.drafted[len(one.accepted) : len(one.accepted) + 1])
    last = one.accepted[-1] if one.accepted else -1
    return [one.drafted[node] for node, parent in enumerate(one.parents) if parent == last]


def amendment_lines(first: Decision, amended: Decision, spell: TokenSpeller | None) -> list[str]:
    """How an amendment's view differs from the provisional one that it takes the place of."""
    before, after = first.view, amended.view
    if before is None or after is None:
        return []
    lines = [
        f"It amends {quote(clean(first.id, 96))}: {_view_words(before)} before, {_view_words(after)} now."
    ]
    if before.wording is not None and after.wording is not None and not after.wording.paths:
        lines.append(_first_difference(before.wording, after.wording, spell))
    return lines


def _first_difference(before: GenerationTrace, after: GenerationTrace, spell: TokenSpeller | None) -> str:
    old, new = before.tokens, after.tokens
    if old == new:
        return "The same tokens: the target confirms what was drafted."
    at = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(old), len(new)) if at is None else at
    return (
        f"They part at token {at + 1}: {_pieces(old[at : at + _NUM_TOKENS_SHOWN], spell)} before, "
        f"{_pieces(new[at : at + _NUM_TOKENS_SHOWN], spell)} now."
    )


def _view_words(view: NewsView) -> str:
    way = "up" if view.direction > 0.0 else "down" if view.direction < 0.0 else "no direction"
    size = f" by {view.size_sigmas:g} sigma" if view.direction else ""
    return f"{way}{size}, volatility {view.volatility_multiplier:g}x, confidence {view.confidence:.0%}"


def _model_name(version: str) -> str:
    return clean(version.partition("@")[0], MAX_READER_CHARS)


def _pieces(tokens: Sequence[int], spell: TokenSpeller | None) -> str:
    return " ".join(_piece(token, spell) for token in tokens) or "nothing"


def _piece(token: int, spell: TokenSpeller | None) -> str:
    told = clean(spell(token), _MAX_PIECE_CHARS) if spell is not None else ""
    return quote(told.strip("␣") or told) if told else f"#{token}"


MAX_LISTED_ITEMS = 12  # told one by one; of more only the number is
_MAX_ID_CHARS = 80
_MAX_REASON_CHARS = 160
ROUTE_WORDS = {
    Route.TEMPLATE: "read by nobody",
    Route.ENCODER: "read by the encoder",
    Route.DRAFT: "read by the draft",
    Route.TARGET: "read by the target",
    Route.FRONTIER: "read by a frontier model",
}


class AuditSection(msgspec.Struct, frozen=True):
    """Lines under a title: one answer of the audit."""

    title: str
    lines: tuple[str, ...]


def explain_decision(
    decision: Decision, first: Decision | None = None, spell: TokenSpeller | None = None
) -> tuple[AuditSection, ...]:
    """The narrative of one decision: what was read and set aside, what moved the view, what was disputed.

    `first` is the provisional decision that this one amends, where there is one; `spell` turns a token into the words
    that its target means by it.
    """
    hearing, view = decision.hearing, decision.view
    considered = hearing.considered if hearing is not None else ()
    aside = hearing.set_aside if hearing is not None else ()
    sections = [
        AuditSection("Suspicion", _suspicion(decision)),
        AuditSection("What was read", _items(considered, decision.as_of_ns) or ("No news was known.",)),
        AuditSection("What was set aside", _items(aside, decision.as_of_ns) or ("Nothing.",)),
    ]
    if view is not None:
        sections += [
            AuditSection("What the view says", _view(view, decision)),
            AuditSection("What moved it", _parts(view, decision.as_of_ns)),
            AuditSection("Contradictions kept", _contradictions(view, decision.as_of_ns) or ("None.",)),
            AuditSection("What it changed", _changes(decision)),
            AuditSection("Draft and target", _wording(decision, first, spell)),
        ]
    return tuple(sections)


def _suspicion(decision: Decision) -> tuple[str, ...]:
    plan, hearing = decision.plan, decision.hearing
    then = f", then {plan.then.value}" if plan.then is not None else ""
    rung = f"Rung {plan.rung.value}{then}: {_shortened(plan.reason)}."
    cleared = _shortened(hearing.cleared) if hearing is not None else ""
    ended = (f"Of late: {cleared}.",) if cleared else ()
    if hearing is None or not hearing.suspicion:
        return ("None.", *ended, rung)
    return (f"Suspected: {clean(hearing.suspicion, 3 * _MAX_REASON_CHARS)}.", *ended, rung)


def _items(items: Sequence[NewsItemAudit], as_of_ns: int) -> tuple[str, ...]:
    lines = [_item(one, as_of_ns) for one in items[:MAX_LISTED_ITEMS]]
    if len(items) > MAX_LISTED_ITEMS:
        lines.append(f"And {len(items) - MAX_LISTED_ITEMS} more.")
    return tuple(lines)


def _item(heard: NewsItemAudit, as_of_ns: int) -> str:
    age = duration_words(max(as_of_ns - heard.available_at_ns, 0))
    parts = [f"{quoted_name(heard.id)} of {quoted_name(heard.source)}, {age} earlier: {_screening(heard)}"]
    if heard.num_alike > 1:
        parts.append(f"told {heard.num_alike} times so far")
    if heard.told_before:
        parts.append(f"first by {quoted_name(heard.told_before)}")
    if heard.scores is not None and heard.scores.encoder:
        parts.append(_scores(heard.scores))
    parts.append(f"{ROUTE_WORDS[heard.route]}: {_shortened(heard.why)}")
    return "; ".join(parts) + "."


def _screening(heard: NewsItemAudit) -> str:
    reasons = ", ".join(_shortened(reason) for reason in heard.reasons)
    because = f" ({reasons})" if reasons else ""
    match heard.verdict:
        case Screening.PASS:
            trusted = "" if heard.trust >= 1.0 else f", trusted {heard.trust:.0%}"
            return f"passed{trusted}{because}"
        case Screening.DISCOUNT:
            return f"discounted, trusted {heard.trust:.0%}{because}"
        case Screening.QUARANTINE:
            return f"in quarantine{because}"


def _scores(scores: NewsScores) -> str:
    return (
        f"sentiment {scores.sentiment:+.2f}, stance {scores.stance:+.2f}, {_shortened(scores.event) or 'no event'} "
        f"{scores.event_confidence:.0%}, relevance {scores.relevance:.2f}, novelty {scores.novelty:.2f}"
    )


def _view(view: NewsView, decision: Decision) -> tuple[str, ...]:
    if view.confidence <= 0.0:
        said = f": {quote(clean(view.words, MAX_WORDS_CHARS))}" if view.words else ""
        return (f"{reader_in_words(view.reader)} has no opinion{said}.", *_cites(view))
    age = decision.as_of_ns - view.as_of_ns
    when = "now" if age <= 0 else f"{duration_words(age)} earlier"
    words = view_slots(view, decision.symbol)["words"]
    lines = [f"{reader_in_words(view.reader)}, {when}: {_opinion(view)}; {words}."]
    if view.prepared:
        lines.append(f"Prepared ahead: {_shortened(view.prepared)}.")
    if view.provisional:
        lines.append("Provisional: an amendment is to follow.")
    return (*lines, *_cites(view))


def _cites(view: NewsView) -> tuple[str, ...]:
    return (
        (f"It rests on {', '.join(map(quoted_name, view.cited))}.",) if view.cited else ("It cites nothing.",)
    )


def _parts(view: NewsView, as_of_ns: int) -> tuple[str, ...]:
    if not view.parts:
        return ("One reading alone, trusted in full." if view.confidence > 0.0 else "Nothing.",)
    weights = [part_weight(part, as_of_ns) for part in view.parts]
    total = sum(weights)
    order = sorted(range(len(weights)), key=lambda place: (-weights[place], place))
    lines = [_part(view.parts[place], weights[place], total, as_of_ns) for place in order[:MAX_LISTED_ITEMS]]
    if len(order) > MAX_LISTED_ITEMS:
        rest = sum(weights[place] for place in order[MAX_LISTED_ITEMS:])
        lines.append(f"{_share(rest, total)} of the weight: {len(order) - MAX_LISTED_ITEMS} more readings.")
    return tuple(lines)


def _part(part: ViewPart, weight: float, total: float, as_of_ns: int) -> str:
    cited = ", ".join(map(quoted_name, part.cited)) or "nothing named"
    return (
        f"{_share(weight, total)} of the weight: {reader_in_words(part.reader)} on {cited}, "
        f"{duration_words(max(as_of_ns - part.as_of_ns, 0))} earlier: {_opinion(part)}; trusted {part.trust:.0%}, "
        f"counts {weight:.2f}."
    )


def _contradictions(view: NewsView, as_of_ns: int) -> tuple[str, ...]:
    found = find_contradictions(view.parts, as_of_ns)
    lines = [_against(view.parts[one], view.parts[other]) for one, other in found[:MAX_LISTED_ITEMS]]
    if len(found) > MAX_LISTED_ITEMS:
        lines.append(f"And {len(found) - MAX_LISTED_ITEMS} more.")
    return tuple(lines)


def _against(one: ViewPart, other: ViewPart) -> str:
    return f"{_speaker(one)} says {_direction(one)}, {_speaker(other)} says {_direction(other)}: both stand."


def _speaker(part: ViewPart) -> str:
    return f"{reader_in_words(part.reader)} on {', '.join(map(quoted_name, part.cited)) or 'nothing named'}"


def _changes(decision: Decision) -> tuple[str, ...]:
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
            f"{ahead} ahead: weighed at {weight:.0%}, the median moves by {move_words(moved, move_unit(abs(moved)))} "
            f"and the band is {1.0 + weight * (stretch - 1.0):.2f} times as wide."
        )
    lines.append(
        f"Divergence {tilt.divergence:.2f}, more than in {int(100.0 * tilt.divergence_rank + 1e-9)}% of "
        f"{reader_in_words(tilt.narrator)}'s tilts before."
    )
    return tuple(lines)


def _wording(decision: Decision, first: Decision | None, spell: TokenSpeller | None) -> tuple[str, ...]:
    view = decision.view
    lines: list[str] = []
    if view is not None and view.wording is not None:
        lines += generation_lines(view.wording, spell)
    elif view is not None and view.confidence > 0.0:
        earlier = view.as_of_ns < decision.as_of_ns
        lines.append("Worded for an earlier decision." if earlier else "No model of ours worded it here.")
    if first is not None:
        lines += amendment_lines(first, decision, spell)
    return tuple(lines) or ("No model was asked.",)


def _opinion(of: NewsView | ViewPart) -> str:
    return f"{_direction(of)}, volatility {of.volatility_multiplier:g}x, confidence {of.confidence:.0%}"


def _direction(of: NewsView | ViewPart) -> str:
    if not of.direction:
        return "no direction"
    return f"{'up' if of.direction > 0.0 else 'down'} by {of.size_sigmas:g} sigma"


def _share(weight: float, total: float) -> str:
    return f"{weight / total:.0%}" if total > 0.0 else "0%"


def reader_in_words(reader: str) -> str:
    """Who read, without digests."""
    return reader_name(reader) or "a reader"


def quoted_name(name: str) -> str:
    """A name from outside, quoted."""
    return quote(clean(name, _MAX_ID_CHARS))


def _shortened(text: str) -> str:
    return clean(text, _MAX_REASON_CHARS).rstrip(".")
