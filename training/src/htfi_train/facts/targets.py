"""What heads of facts should say of a labelled line: the place of each label, of the text and of its tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from htfi.narrative.facts.network import LABELS, TOKEN_LABELS
from htfi_train.facts.lines import SIDES, FactLine, PartySpan

IGNORED = -100  # of a token of which the label is not known


@dataclass(frozen=True, slots=True)
class FactTargets:
    """By head of the text, and by token: role and effect, `IGNORED` where unknown."""

    of_text: Mapping[str, int]
    roles: list[int]
    effects: list[int]


def fact_targets(
    line: FactLine, spans: Sequence[PartySpan], places: Sequence[tuple[int, int]]
) -> FactTargets:
    """Of a line whose parties stand at `spans` and whose tokens stand at `places`, [CLS] and [SEP] at (0, 0)."""
    roles, effects = [len(TOKEN_LABELS["roles"]) - 1] * len(places), [IGNORED] * len(places)
    for token, (start, end) in enumerate(places):
        if start == end:
            roles[token] = IGNORED
        for span in spans:
            if start < span.end and end > span.start:
                roles[token] = TOKEN_LABELS["roles"].index(span.role)
                effects[token] = SIDES.index(span.side)
    of_text = {
        "event": LABELS["event"].index(line.kind),
        "tone": SIDES.index(line.tone),
        "axis": SIDES.index(line.axis),
        "modality": LABELS["modality"].index(line.modality),
        "tense": LABELS["tense"].index(line.tense),
    }
    return FactTargets(of_text, roles, effects)
