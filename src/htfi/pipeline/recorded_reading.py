"""What a recorded reading must be, given its decision and the settings: who read, which items, with which draft, and
the view that its answers come to. `bound_readings` holds a ledger's readings against it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from htfi.domain.decision import Decision, Part, Rung, Shown, View, Wording
from htfi.domain.news import Heard
from htfi.narrative.answer import Understanding, to_view
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.deep_reader import deep_version, meant_together, together
from htfi.narrative.encoder_reader import read_scores
from htfi.narrative.meaning import Meaning
from htfi.narrative.model_reader import who_read
from htfi.narrative.question import MAX_ITEMS, Question

PROMOTED = "drafts"  # among a decision's models where drafts are promoted while it runs: any may have guessed


class Terms(NamedTuple):
    """What a run's settings say of readings; what is read ahead of a release is opened `lead_ns` before it."""

    narrative: NarrativeConfig
    lead_ns: int


def first_difference(
    recorded: Sequence[int], expected: Sequence[int], spell: Callable[[int], str], begin: int = 0
) -> str:
    """The first place where tokens differ, in words; empty where they are the same. Places count from `begin`."""
    for place, (one, other) in enumerate(zip(recorded, expected, strict=False), begin):
        if one != other:
            return f"token {place}: recorded {_spelled(one, spell)}, expected {_spelled(other, spell)}"
    if len(recorded) == len(expected):
        return ""
    place = begin + min(len(recorded), len(expected))
    if len(recorded) > len(expected):
        return f"token {place}: recorded {_spelled(recorded[place - begin], spell)}, expected the end"
    return f"token {place}: recorded the end, expected {_spelled(expected[place - begin], spell)}"


def _spelled(token: int, spell: Callable[[int], str]) -> str:
    return f"'{spell(token)}' ({token})"


def identity_problems(decision: Decision, read: View, wording: Wording, terms: Terms) -> list[str]:
    """What who read, and how, must be by the decision's plan and the settings."""
    config, found = terms.narrative, list[str]()
    rung = decision.plan.then if read.prepared and decision.plan.then else decision.plan.rung
    reader = decision.models.get(f"reader.{rung}", "")
    in_depth = rung is Rung.DEEP
    expected = deep_version(wording.target, len(wording.paths)) if wording.paths else wording.target
    if reader != expected:
        found.append(f"{expected} wrote, where {reader or 'nobody'} reads at the rung {rung}")
    if bool(wording.paths) and (not in_depth or len(wording.paths) != config.deep_paths):
        found.append(
            f"it has {len(wording.paths)} answers, which is not what a reading at the rung {rung} has"
        )
    temperature = config.deep_temperature if wording.paths else config.temperature
    if wording.temperature != temperature:
        found.append(f"its temperature is {wording.temperature:g}; the settings say {temperature:g}")
    drafts = decision.models.get("reader.edge", wording.draft)
    may_change = wording.num_settled < 0 and (
        PROMOTED in decision.models or "readings" not in decision.models
    )
    if wording.draft not in ("", drafts) and not may_change:
        found.append(f"{wording.draft} drafted, where the draft is {drafts}")
    if (read.provisional and not read.prepared) != (wording.num_settled >= 0):
        found.append("whether the view is provisional does not follow from who wrote it")
    if wording.num_settled >= max(len(wording.tokens), 1):
        found.append(
            f"{wording.num_settled} of {len(wording.tokens)} tokens are said to be settled: "
            "nothing is left to the draft"
        )
    if read.as_of_ns != decision.as_of_ns:
        found.append("its view is of another instant")
    return found


def items_shown(
    decision: Decision, read: View, wording: Wording
) -> tuple[tuple[Shown, ...] | None, list[str]]:
    """The items that the model was shown, held against those that the decision considered."""
    considered = decision.hearing.considered if decision.hearing is not None else ()
    if wording.shown is msgspec.UNSET:
        if wording.num_items > len(considered):
            return None, [f"it read {wording.num_items} items, where {len(considered)} were considered"]
        return tuple(
            Shown(one.id, one.available_at_ns, (), "") for one in considered[: wording.num_items]
        ), []
    shown, found = wording.shown, list[str]()
    if wording.num_items != len(shown):
        found.append(f"it is said to have read {wording.num_items} items; {len(shown)} are recorded")
    if read.prepared:
        name, asked_ns = shown[0].id if shown else "", wording.asked_ns
        if (
            not read.prepared.startswith(name.rpartition("/")[0] + ", ")
            or shown[0].available_at_ns != asked_ns
        ):
            found.append("it was not read for the release that its view was prepared for")
        return shown, found
    for place, item in enumerate(shown[:MAX_ITEMS]):
        heard = considered[place] if place < len(considered) else None
        told = heard and (heard.id, heard.available_at_ns, heard.is_tagged)
        if told != (item.id, item.available_at_ns, bool(item.symbols)):
            found.append(f"item {place + 1} that it read, {item.id}, is not that of its news")
    return shown, found


def noted_part(item: Heard, config: NarrativeConfig) -> Part:
    return read_scores(item.id, item.available_at_ns, item.trust, item.scores, config)


def view_told(
    said: Sequence[Understanding], read: View, wording: Wording, question: Question, meaning: Meaning | None
) -> View:
    """The view that answers come to."""
    half_life_ns = read.half_life_ns
    if not wording.paths:
        reader = who_read(wording.target, wording.draft, wording.num_settled)
        view = replace(to_view(said[0], question, half_life_ns, reader), provisional=wording.num_settled >= 0)
        return replace(view, meant=meaning.of(view) if meaning is not None else ())
    reader = deep_version(wording.target, len(wording.paths))
    each = [to_view(one, question, half_life_ns, reader) for one in said]
    view = to_view(together(said)[0], question, half_life_ns, reader)
    return replace(view, meant=meant_together(each, meaning) if meaning is not None else ())


def prepared_problems(decision: Decision, read: View, wording: Wording, expected: View) -> list[str]:
    """Whether what was read ahead is cited as the item that told it, and all else as it was then."""
    heard = {one.id for one in decision.hearing.considered} if decision.hearing is not None else set[str]()
    foreseen = wording.shown[0].id if wording.shown else ""
    left = list(read.cited)
    for name in expected.cited:
        if left and (left[0] == name or (name == foreseen and left[0] in heard)):
            del left[0]
        elif name == foreseen:
            return ["it does not cite the item that told the release"]
    return ["it cites what was not cited when it was prepared"] if left else []
