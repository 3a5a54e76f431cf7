"""What a model was shown, compared with the news that its decision records."""

import msgspec

from htfi.domain.decision import Decision
from htfi.domain.generation import PromptDialect
from htfi.domain.generation_trace import GenerationTrace, PromptItem
from htfi.domain.news_view import NewsView
from htfi.narrative.calendar.prefetching import is_prepared_for
from htfi.narrative.fact_marks import marks_of
from htfi.narrative.neutral_questions import has_neutral_names, neutral_ticker
from htfi.narrative.question import MAX_ITEMS


def prompt_items(
    decision: Decision, read: NewsView, trace: GenerationTrace
) -> tuple[tuple[PromptItem, ...] | None, list[str]]:
    """The items that the model was shown, compared with those that the decision considered."""
    considered = decision.news_context.considered if decision.news_context is not None else ()
    if trace.shown is msgspec.UNSET:
        if trace.num_items > len(considered):
            return None, [f"it read {trace.num_items} items, but only {len(considered)} were considered"]
        return tuple(
            PromptItem(one.id, one.available_at_ns, (), "") for one in considered[: trace.num_items]
        ), []
    shown, found = trace.shown, list[str]()
    if trace.num_items != len(shown):
        found.append(f"it read {trace.num_items} items, but {len(shown)} are recorded")
    if read.prepared:
        name, asked_ns = shown[0].id if shown else "", trace.asked_ns
        if not is_prepared_for(read.prepared, name) or shown[0].available_at_ns != asked_ns:
            found.append("it was not read for the announcement that its view was prepared for")
        return shown, found
    for place, item in enumerate(shown[:MAX_ITEMS]):
        audited = considered[place] if place < len(considered) else None
        shown_as = audited and (audited.id, audited.available_at_ns, audited.is_tagged)
        if shown_as != (item.id, item.available_at_ns, bool(item.symbols)):
            found.append(f"item {place + 1} that it read, {item.id}, differs from that of its news")
    return shown, found


def symbol_in_prompt(decision: Decision, read: NewsView) -> str:
    """What the prompt calls the symbol: a neutral ticker where facts were read with neutral names."""
    considered = decision.news_context.considered if decision.news_context is not None else ()
    readers = [one.reading.reader for one in considered if one.reading is not msgspec.UNSET]
    return neutral_ticker(decision.symbol) if not read.prepared and has_neutral_names(readers) else ""


def fact_problems(
    decision: Decision, read: NewsView, trace: GenerationTrace, dialect: PromptDialect
) -> list[str]:
    """Whether the facts that it was shown are those that the decision records; readers in words had none at first."""
    if read.prepared or trace.shown is msgspec.UNSET or decision.news_context is None:
        return []
    found: list[str] = []
    for item, audited in zip(trace.shown, decision.news_context.considered, strict=False):
        told = () if audited.reading is msgspec.UNSET else marks_of(audited.reading)
        shown = () if item.facts is msgspec.UNSET else item.facts
        if shown != told and (shown or dialect is PromptDialect.MINI_FACTS):
            found.append(f"the facts of {item.id} that it was shown are not those that its news records")
    return found
