"""The news of a decision as text, with the words that counted: what an entry holds of it, and nothing else."""

from msgspec import UNSET

from htfi.client.news_bodies import ConsideredItem, ReadNewsBody
from htfi.domain.decision import Decision
from htfi.domain.time import format_ns
from htfi.narrative.facts.wording import reading_words
from htfi.narrative.rationale.writer import cited_headlines
from htfi.pipeline.audit.attribution import WORD_UNITS
from htfi.wiring.service.phrases import phrases_of

_QUOTES = "“”"


def read_news_of(decision: Decision, index: int) -> ReadNewsBody:
    """The items that a decision considered, those that it rests on first; what was set aside is not quoted."""
    context = decision.news_context
    considered = () if context is None else context.considered
    headlines, nats = _headlines(decision), _word_nats(decision)
    view = decision.view
    cited = {*decision.rationale.cited, *(view.cited if view is not None else ())}
    items: list[ConsideredItem] = []
    for audit in considered:
        text = headlines.get(audit.id)
        if text is None:
            continue
        reading = None if audit.reading is UNSET else audit.reading
        event = "" if reading is None else reading.event
        found = phrases_of(text, event, decision.symbol, nats.get(audit.id, ()))
        items.append(
            ConsideredItem(
                id=audit.id,
                source=audit.source,
                available_at=format_ns(audit.available_at_ns),
                headline=text,
                phrases=found,
                verdict=audit.verdict.value,
                trust=audit.trust,
                route=audit.route.value,
                is_cited=audit.id in cited,
                reading="" if reading is None else reading_words(reading),
            )
        )
    items.sort(key=lambda one: not one.is_cited)
    return ReadNewsBody(index, items, len(considered) - len(items))


def _headlines(decision: Decision) -> dict[str, str]:
    """Cleaned headlines by id: those that the rationale cites, and as the model was shown them."""
    found = {name: text.strip(_QUOTES) for name, text in cited_headlines(decision.rationale).items()}
    trace = None if decision.view is None else decision.view.trace
    if trace is not None and trace.shown is not UNSET:
        found |= {one.id: one.headline for one in trace.shown}
    return found


def _word_nats(decision: Decision) -> dict[str, list[float]]:
    """The recorded weights of the words of each headline, in nats, by id."""
    trace = None if decision.view is None else decision.view.trace
    if trace is None or trace.states is UNSET or trace.shown is UNSET:
        return {}
    pairs = zip(trace.shown, trace.states.words, strict=False)
    return {one.id: [weight / WORD_UNITS for weight in words] for one, words in pairs}
