"""The view that recorded answers and items come to, derived anew to compare with the recorded one."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from htfi.domain.decision import Decision
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news import NewsItemAudit
from htfi.domain.news_view import NewsView, ViewPart
from htfi.narrative.answer import ParsedAnswer, to_view
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.deep_reader import (
    combine_answers,
    combine_meanings,
    deep_reader_version,
)
from htfi.narrative.question import Question
from htfi.narrative.readers import combined_version, part_from_reading, part_from_scores
from htfi.narrative.view_calibration import ViewCalibration


def item_part(item: NewsItemAudit, decision: Decision, config: NarrativeConfig) -> ViewPart:
    """The part that an item gives to the view: by its facts, where these were recorded."""
    bar = decision.circumstances
    if item.reading is not msgspec.UNSET:
        bar_ns = bar.bar_end_ns - bar.bar_start_ns
        return part_from_reading(
            item.id, item.available_at_ns, item.trust, item.reading, decision.as_of_ns, bar_ns, config
        )
    return part_from_scores(item.id, item.available_at_ns, item.trust, item.scores, config)


def expected_view(
    answers: Sequence[ParsedAnswer],
    read: NewsView,
    trace: GenerationTrace,
    question: Question,
    meaning: ViewCalibration | None,
) -> NewsView:
    """The view that answers come to."""
    half_life_ns = read.half_life_ns
    if not trace.paths:
        reader = combined_version(trace.target, trace.draft, trace.num_verified)
        view = replace(
            to_view(answers[0], question, half_life_ns, reader), provisional=trace.num_verified >= 0
        )
        return replace(view, calibrated_effects=meaning.meanings(view) if meaning is not None else ())
    reader = deep_reader_version(trace.target, len(trace.paths))
    each = [to_view(one, question, half_life_ns, reader) for one in answers]
    view = to_view(combine_answers(answers)[0], question, half_life_ns, reader)
    return replace(view, calibrated_effects=combine_meanings(each, meaning) if meaning is not None else ())


def prepared_problems(
    decision: Decision, read: NewsView, trace: GenerationTrace, expected: NewsView
) -> list[str]:
    """Whether what was read ahead is cited as the item that reported it, and all else as it was then."""
    audited = (
        {one.id for one in decision.news_context.considered}
        if decision.news_context is not None
        else set[str]()
    )
    foreseen = trace.shown[0].id if trace.shown else ""
    left = list(read.cited)
    for name in expected.cited:
        if left and (left[0] == name or (name == foreseen and left[0] in audited)):
            del left[0]
        elif name == foreseen:
            return ["it does not cite the item that reported the announcement"]
    return ["it cites items that were not cited when it was prepared"] if left else []
