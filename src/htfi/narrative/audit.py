"""Explains in words what became of the news in a decision: read, set aside, weighed, disputed. Apps show it.

Everything is taken from the record and derived from nothing else, so that two auditors read the same. Text from outside
is shown cleaned and between quotation marks; what was held back is named by its id, never quoted.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from htfi.domain.decision import Decision
from htfi.domain.generation import DraftRound, RuleTrace
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news import NewsItemAudit, NewsScores, Route, Screening
from htfi.domain.news_view import NewsView, ViewPart
from htfi.narrative.facts.wording import reading_words
from htfi.narrative.merging import find_contradictions, part_weight
from htfi.narrative.rationale.units import (
    MAX_READER_CHARS,
    duration_words,
    percent,
    reader_name,
    return_words,
    sigmas_words,
    volatility_words,
)
from htfi.narrative.rationale.versions import CURRENT
from htfi.narrative.text import clean, quote

TokenSpeller = Callable[[int], str]  # a token in words
MAX_LISTED_ITEMS = 12  # listed one by one; of the rest the number is given
MAX_LISTED_DISPUTES = 12  # places where draft and target differed, listed one by one
_NUM_TOKENS_SHOWN = 4  # tokens shown of either answer from where they differ
_MAX_PIECE_CHARS = 24
_MAX_ID_CHARS = 80
_MAX_REASON_CHARS = 160
_MAX_WORDS_CHARS = 200
_MAX_STATEMENT_CHARS = 400
ROUTE_WORDS = {
    Route.TEMPLATE: "read by no model",
    Route.ENCODER: "read by the encoder",
    Route.DRAFT: "read by the draft model",
    Route.TARGET: "read by the target model",
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

    `first` is the provisional decision that this one amends, if any; `spell` turns a token into the words that its
    target means by it.
    """
    news_context, view = decision.news_context, decision.view
    considered = news_context.considered if news_context is not None else ()
    aside = news_context.set_aside if news_context is not None else ()
    trigger = [AuditSection("Why it was made between two bars", _trigger(decision))]
    sections = [
        *(trigger if decision.is_between_bars else []),
        AuditSection("Suspicion", _suspicion(decision)),
        AuditSection("What was read", _items(considered, decision.as_of_ns) or ("There was no news.",)),
        AuditSection("What was set aside", _items(aside, decision.as_of_ns) or ("Nothing.",)),
    ]
    documents = _documents(considered)
    sections += [AuditSection("What central banks changed", documents)] if documents else []
    if view is not None:
        sections += [
            AuditSection("What the view says", _view(view, decision)),
            AuditSection("What moved it", _parts(view, decision.as_of_ns)),
            AuditSection("Contradictions kept", _contradictions(view, decision.as_of_ns) or ("None.",)),
            AuditSection("What it changed", _changes(decision)),
            AuditSection("Draft and target", _generation(decision, first, spell)),
        ]
    return tuple(sections)


def _trigger(decision: Decision) -> tuple[str, ...]:
    trigger = decision.news_trigger
    if isinstance(trigger, UnsetType):
        return ()
    lines = [
        f"{quoted_name(item.id)} matters: {_shortened(', '.join(item.reasons))}."
        for item in trigger.items[:MAX_LISTED_ITEMS]
    ]
    lines += _more(len(trigger.items) - MAX_LISTED_ITEMS)
    lines.append(f"It replaces {quoted_name(trigger.replaces)} until the next bar closes.")
    if trigger.elapsed_bars > 0.0:
        lines.append(f"{percent(trigger.elapsed_bars)} of that bar had passed.")
    if trigger.num_suppressed:
        lines.append(
            f"Left to the bars by a quiet rule since the last such decision: {trigger.num_suppressed:,}."
        )
    return tuple(lines)


def _suspicion(decision: Decision) -> tuple[str, ...]:
    plan, news_context = decision.plan, decision.news_context
    then = f", then {plan.rung_after_release.value}" if plan.rung_after_release is not None else ""
    rung = f"Rung: {plan.rung.value}{then}. Reason: {_shortened(plan.reason_text)}."
    reset = _shortened(news_context.reset_by) if news_context is not None else ""
    ended = (f"Ended recently: {reset}.",) if reset else ()
    if news_context is None or not news_context.suspicion:
        return ("None.", *ended, rung)
    return (f"Suspected: {clean(news_context.suspicion, 3 * _MAX_REASON_CHARS)}.", *ended, rung)


def _items(items: Sequence[NewsItemAudit], as_of_ns: int) -> tuple[str, ...]:
    lines = [_item(one, as_of_ns) for one in items[:MAX_LISTED_ITEMS]]
    return (*lines, *_more(len(items) - MAX_LISTED_ITEMS))


def _documents(items: Sequence[NewsItemAudit]) -> tuple[str, ...]:
    """What changed in each bank's document since the last of its series."""
    changed = [one for one in items if one.statement is not UNSET]
    return tuple(
        f"{quoted_name(one.id)}: {clean(line, _MAX_STATEMENT_CHARS)}."
        for one in changed[:MAX_LISTED_ITEMS]
        if one.statement is not UNSET
        for line in one.statement
    )


def _more(number: int) -> tuple[str, ...]:
    return (f"And {number} more.",) if number > 0 else ()


def _item(item: NewsItemAudit, as_of_ns: int) -> str:
    age = duration_words(max(as_of_ns - item.available_at_ns, 0))
    parts = [f"{quoted_name(item.id)} from {quoted_name(item.source)}, {age} earlier: {_screening(item)}"]
    if item.num_alike > 1:
        parts.append(f"reported {item.num_alike} times so far")
    if item.first_report:
        parts.append(f"first reported by {quoted_name(item.first_report)}")
    if item.scores is not None and item.scores.encoder:
        parts.append(_scores(item.scores))
    if item.reading is not UNSET:
        parts.append(reading_words(item.reading))
    parts.append(f"{ROUTE_WORDS[item.route]}, reason: {_shortened(item.why)}")
    return "; ".join(parts) + "."


def _screening(item: NewsItemAudit) -> str:
    reasons = ", ".join(_shortened(reason) for reason in item.reasons)
    because = f" ({reasons})" if reasons else ""
    match item.verdict:
        case Screening.PASS:
            trust = "" if item.trust >= 1.0 else f", trust {item.trust:.0%}"
            return f"passed{trust}{because}"
        case Screening.DISCOUNT:
            return f"discounted, trust {item.trust:.0%}{because}"
        case Screening.QUARANTINE:
            return f"held in quarantine{because}"


def _scores(scores: NewsScores) -> str:
    return (
        f"sentiment {scores.sentiment:+.2f}, stance {scores.stance:+.2f}, {_shortened(scores.event) or 'no event'} "
        f"{scores.event_confidence:.0%}, relevance {scores.relevance:.2f}, novelty {scores.novelty:.2f}"
    )


def _view(view: NewsView, decision: Decision) -> tuple[str, ...]:
    if view.confidence <= 0.0:
        reason = f": {quote(clean(view.words, _MAX_WORDS_CHARS))}" if view.words else ""
        return (f"{reader_in_words(view.reader)} has no opinion{reason}.", *_citations(view))
    age_ns = decision.as_of_ns - view.as_of_ns
    when = "now" if age_ns <= 0 else f"{duration_words(age_ns)} earlier"
    reason = CURRENT.view_slots(view, decision.symbol)["words"]
    lines = [f"{reader_in_words(view.reader)}, {when}: {_opinion(view)}. Reason given: {reason}."]
    if view.prepared:
        lines.append(f"Prepared before the announcement, for {_shortened(view.prepared)}.")
    if view.provisional:
        lines.append("Provisional: an amendment follows.")
    return (*lines, *_citations(view))


def _citations(view: NewsView) -> tuple[str, ...]:
    if not view.cited:
        return ("It cites no item.",)
    return (f"It rests on {', '.join(map(quoted_name, view.cited))}.",)


def _parts(view: NewsView, as_of_ns: int) -> tuple[str, ...]:
    if not view.parts:
        return ("A single reading, with full trust." if view.confidence > 0.0 else "Nothing.",)
    weights = [part_weight(part, as_of_ns) for part in view.parts]
    total = sum(weights)
    order = sorted(range(len(weights)), key=lambda place: (-weights[place], place))
    lines = [_part(view.parts[place], weights[place], total, as_of_ns) for place in order[:MAX_LISTED_ITEMS]]
    if len(order) > MAX_LISTED_ITEMS:
        rest = sum(weights[place] for place in order[MAX_LISTED_ITEMS:])
        lines.append(f"{_share(rest, total)} of the weight: {len(order) - MAX_LISTED_ITEMS} more readings.")
    return tuple(lines)


def _part(part: ViewPart, weight: float, total: float, as_of_ns: int) -> str:
    age = duration_words(max(as_of_ns - part.as_of_ns, 0))
    return (
        f"{_share(weight, total)} of the weight: {_reading_of(part)}, {age} earlier: {_opinion(part)}; "
        f"trust {part.trust:.0%}, weight {weight:.2f}."
    )


def _contradictions(view: NewsView, as_of_ns: int) -> tuple[str, ...]:
    found = find_contradictions(view.parts, as_of_ns)
    lines = [
        f"{_reading_of(view.parts[one])}: {_direction(view.parts[one])}. {_reading_of(view.parts[other])}: "
        f"{_direction(view.parts[other])}. Both are kept."
        for one, other in found[:MAX_LISTED_ITEMS]
    ]
    return (*lines, *_more(len(found) - MAX_LISTED_ITEMS))


def _reading_of(part: ViewPart) -> str:
    return f"{reader_in_words(part.reader)} on {', '.join(map(quoted_name, part.cited)) or 'no named item'}"


def _changes(decision: Decision) -> tuple[str, ...]:
    forecast, tilt = decision.forecast, decision.forecast.tilt
    if tilt is None:
        return ("Nothing in the forecast.",)
    lines: list[str] = []
    for horizon, shift, stretch, weight in zip(
        forecast.horizons, tilt.shift, tilt.stretch, tilt.weight, strict=True
    ):
        ahead = f"{horizon} bar{'s' * (horizon != 1)}"
        lines.append(
            f"{ahead} ahead: with a weight of {weight:.0%}, the median moves by {return_words(weight * shift)} and the "
            f"band is {1.0 + weight * (stretch - 1.0):.2f} times as wide."
        )
    lines.append(
        f"Divergence {tilt.divergence:.2f}: more than in {int(100.0 * tilt.divergence_rank + 1e-9)}% of the earlier "
        f"readings by {reader_in_words(tilt.narrator)}."
    )
    return tuple(lines)


def _generation(decision: Decision, first: Decision | None, spell: TokenSpeller | None) -> tuple[str, ...]:
    view = decision.view
    lines: list[str] = []
    if view is not None and view.trace is not None:
        lines += generation_lines(view.trace, spell)
    elif view is not None and view.confidence > 0.0:
        earlier = view.as_of_ns < decision.as_of_ns
        lines.append(
            "The answer was generated for an earlier decision." if earlier else "No local model generated it."
        )
    if first is not None:
        lines += amendment_lines(first, decision, spell)
    return tuple(lines) or ("No model was asked.",)


def rule_note(rule: RuleTrace) -> str:
    """What a reader of answers must know of the acceptance rule behind them."""
    if rule.name == "entropy_aware":
        return (
            "The entropy-aware rule accepted drafted tokens. It changes the distribution of answers: where both models "
            "were uncertain alike, a token was sampled again, so the target alone would not give these probabilities."
        )
    return (
        "The rejection rule accepted drafted tokens. Answers follow the target's distribution; which answer a seed "
        "gives depends on the drafts."
    )


def generation_lines(trace: GenerationTrace, spell: TokenSpeller | None) -> list[str]:
    """Who generated an answer, how much of it was drafted and accepted, and each place where the target differed."""
    target, draft = _model_name(trace.target), _model_name(trace.draft)
    num_tokens = len(trace.tokens)
    if trace.paths:
        same = sum(path == trace.tokens for path in trace.paths)
        return [
            f"{target} answered {len(trace.paths)} times by sampling; {same} of the answers equal the one shown."
        ]
    if trace.num_verified >= 0:
        rest = num_tokens - trace.num_verified
        lines = [
            f"{target} confirmed {trace.num_verified} of {num_tokens} tokens; {draft or 'the draft'} wrote the other "
            f"{rest}."
        ]
    else:
        lines = [f"{target} confirmed all {num_tokens} tokens."]
    if not isinstance(trace.rule, UnsetType):
        lines.append(rule_note(trace.rule))
    num_drafted = sum(len(one.drafted) for one in trace.rounds)
    if not num_drafted:
        return [*lines, "No token was drafted."]
    num_accepted = sum(len(one.accepted) for one in trace.rounds)
    share = percent(num_accepted / num_drafted)
    lines.append(
        f"{draft or trace.strategy} drafted {num_drafted} tokens, of which {num_accepted} were accepted ({share})."
    )
    return lines + _disputes(trace.rounds, spell)


def _disputes(rounds: Sequence[DraftRound], spell: TokenSpeller | None) -> list[str]:
    found = [
        (turn, guesses, one.token)
        for turn, one in enumerate(rounds, 1)
        if one.token >= 0 and (guesses := _refused(one))
    ]
    if not found:
        return ["The target never differed from the draft."]
    lines = [
        f"Round {turn}: the draft wrote {' or '.join(_piece(guess, spell) for guess in guesses)}, the target "
        f"{_piece(token, spell)}."
        for turn, guesses, token in found[:MAX_LISTED_DISPUTES]
    ]
    return [*lines, *_more(len(found) - MAX_LISTED_DISPUTES)]


def _refused(one: DraftRound) -> list[int]:
    """The guesses for the first place at which none was accepted; empty where all that was checked was accepted."""
    if not one.parents:
        return list(one.drafted[len(one.accepted) : len(one.accepted) + 1])
    last = one.accepted[-1] if one.accepted else -1
    return [one.drafted[node] for node, parent in enumerate(one.parents) if parent == last]


def amendment_lines(first: Decision, amended: Decision, spell: TokenSpeller | None) -> list[str]:
    """How an amendment's view differs from the provisional one that it replaces."""
    before, after = first.view, amended.view
    if before is None or after is None:
        return []
    lines = [f"It amends {quote(clean(first.id, 96))}. Before: {_opinion(before)}. Now: {_opinion(after)}."]
    if before.trace is not None and after.trace is not None and not after.trace.paths:
        lines.append(_first_difference(before.trace, after.trace, spell))
    return lines


def _first_difference(before: GenerationTrace, after: GenerationTrace, spell: TokenSpeller | None) -> str:
    old, new = before.tokens, after.tokens
    if old == new:
        return "The tokens are the same: the target confirms what was drafted."
    at = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(old), len(new)) if at is None else at
    return (
        f"They differ from token {at + 1} on: {_pieces(old[at : at + _NUM_TOKENS_SHOWN], spell)} before, "
        f"{_pieces(new[at : at + _NUM_TOKENS_SHOWN], spell)} now."
    )


def _opinion(of: NewsView | ViewPart) -> str:
    return f"{_direction(of)}, volatility {volatility_words(of.volatility_multiplier)}, confidence {of.confidence:.0%}"


def _direction(of: NewsView | ViewPart) -> str:
    if not of.direction:
        return "no direction"
    return f"{'up' if of.direction > 0.0 else 'down'} by {sigmas_words(of.size_sigmas)}"


def _share(weight: float, total: float) -> str:
    return f"{weight / total:.0%}" if total > 0.0 else "0%"


def _model_name(version: str) -> str:
    return clean(version.partition("@")[0], MAX_READER_CHARS)


def _pieces(tokens: Sequence[int], spell: TokenSpeller | None) -> str:
    return " ".join(_piece(token, spell) for token in tokens) or "nothing"


def _piece(token: int, spell: TokenSpeller | None) -> str:
    words = clean(spell(token), _MAX_PIECE_CHARS) if spell is not None else ""
    return quote(words.strip("␣") or words) if words else f"#{token}"


def reader_in_words(reader: str) -> str:
    """Who read, without digests."""
    return reader_name(reader) or "a reader"


def quoted_name(name: str) -> str:
    """A name from outside, quoted."""
    return quote(clean(name, _MAX_ID_CHARS))


def _shortened(text: str) -> str:
    return clean(text, _MAX_REASON_CHARS).rstrip(".")
