"""Opens what a recorded forecast is explained with: the question of its reading, rebuilt, and the model that read."""

from pathlib import Path
from typing import NamedTuple, cast

from htfi.adapters.keys.mark_key import mark_key_of
from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput
from htfi.governance.ledger.log import LogReader
from htfi.narrative.merging import unmerged
from htfi.pipeline.audit.attribution import (
    ExplainingModel,
    ItemEffect,
    RecordedReading,
    item_effects,
    same_states,
)
from htfi.pipeline.audit.readings import ReadingAuditor
from htfi.pipeline.audit.replay import ModelRole, noise_seeds, reading_of
from htfi.pipeline.record.entry import try_decode_entry
from htfi.wiring.verification import find_writer, reading_terms, run_settings


class ExplainedForecast(NamedTuple):
    """What each item did; and whether the states by which the model came to its answer were recorded, and computed
    again to the bit (None: not recorded, or not asked for).
    """

    effects: list[ItemEffect]
    has_same_states: bool | None
    was_read: bool  # by a model, whose states could have been recorded


def explain_forecast(
    folder: Path, log: LogReader, index: int, decision: Decision, target: Path | None = None, *, trace: bool
) -> ExplainedForecast:
    """What each item of news did to the forecast of entry `index`. `target` is the folder of the model that read.

    With `trace` also how much each word of the headlines carried the view, and the digests of the model's states.

    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    reading = recorded_reading(folder, log, index, decision, target)
    effects = item_effects(decision, reading, with_words=trace)
    return ExplainedForecast(
        effects, same_states(reading) if reading is not None and trace else None, reading is not None
    )


def recorded_reading(
    folder: Path, log: LogReader, index: int, decision: Decision, target: Path | None = None
) -> RecordedReading | None:
    """The reading that a decision's view is of, its own or an earlier one's; None where no model of ours read.

    Raises: InvalidInput, IntegrityError.
    """
    read = unmerged(decision.view) if decision.view is not None else None
    if read is None:
        return None
    try:
        origin = reading_of(decision, log.entries(0, index))
    except InvalidInput:
        return None
    trace = origin.view.trace if origin.view is not None else None
    if trace is None:
        return None
    if trace.num_verified >= 0 or read.prepared:
        raise InvalidInput(
            f"{decision.id}: its view is provisional, and what the draft or a preparation read is not asked again: "
            "explain the decision that amends it"
        )
    seeds = noise_seeds(origin, trace, mark_key_of(folder))
    settings = run_settings(folder, origin)
    opened = find_writer(trace.target, target, settings.models, f"--{ModelRole.TARGET.value}")
    auditor = ReadingAuditor(reading_terms(settings), lambda _: None)
    for entry in log.entries(0, index + 1):
        earlier = try_decode_entry(entry)
        if earlier is None:
            continue
        if earlier.id == origin.id:
            break
        auditor.history.add(earlier)
    question = auditor.question_of(origin)
    if question is None:
        raise InvalidInput(f"{decision.id}: what its model was asked cannot be rebuilt from the record")
    return RecordedReading(
        question,
        trace,
        seeds,
        cast("ExplainingModel", opened),
        tuple(opened.tokenizer.opening),
        settings.decoding,
    )
