"""What a network says of a text with neutral names: the mean of the forms, and what is asked of the text as it is
written, which is whether it is news of markets at all, and in part which role a name has.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.narrative.facts.extraction import FactScores
from htfi.narrative.facts.record import KINDS, EventKind
from htfi.narrative.neutral_names import NeutralText, Replaced

_UNRELATED = KINDS.index(EventKind.UNRELATED)
_SURELY_UNRELATED = 0.5  # probability of the text as it is written from which it counts
_WRITTEN_SHARE = 0.5  # of the text as it is written in the roles of names; chosen on labelled lines


def mean_scores(texts: Sequence[NeutralText], scores: Sequence[FactScores]) -> FactScores:
    """What was read of the forms of one text, averaged: of the text, of each word between names, and of each name.

    An adjective is no party, whichever nationality or religion it names.
    """
    by_place: dict[tuple[int, int], list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = {}
    for text, one in zip(texts, scores, strict=True):
        tokens: dict[tuple[int, int], list[int]] = {}
        for token, (start, end) in enumerate(text.original(one.spans).tolist()):
            tokens.setdefault((start, end), []).append(token)
        for place, of_place in tokens.items():
            read = one.roles[of_place].mean(axis=0), one.effects[of_place].mean(axis=0)
            by_place.setdefault(place, []).append(read)
    places = sorted(by_place)
    roles = np.array([np.mean([roles for roles, _ in by_place[place]], axis=0) for place in places])
    adjectives = {(one.start, one.name_end) for text in texts for one in text.replaced if not one.is_name}
    roles[[place in adjectives for place in places]] = np.eye(roles.shape[1])[-1]
    return FactScores(
        event=np.mean([one.event for one in scores], axis=0),
        tone=np.mean([one.tone for one in scores], axis=0),
        axis=np.mean([one.axis for one in scores], axis=0),
        modality=np.mean([one.modality for one in scores], axis=0),
        tense=np.mean([one.tense for one in scores], axis=0),
        spans=np.array(places, np.int64).reshape(-1, 2),
        roles=roles,
        effects=np.array([np.mean([effects for _, effects in by_place[place]], axis=0) for place in places]),
    )


def with_text_as_written(
    neutral: FactScores, replaced: Sequence[Replaced], text: str, written: FactScores
) -> FactScores:
    """The scores of a neutral text, completed by those of the text as it is written, in which `replaced` are names.

    A name may be an ordinary word there ('Ford closed to walkers'), and what a firm does tells its role (a bank rates).
    Kind of event, tone and effects are those of the neutral text, but that the text may be no news of markets.
    """
    own = mean_scores([as_written(text, replaced)], [written])
    places = {(start, end): place for place, (start, end) in enumerate(own.spans.tolist())}
    roles = neutral.roles.copy()
    for place, (start, end) in enumerate(neutral.spans.tolist()):
        other = places.get((start, end))
        if other is not None:
            roles[place] += _WRITTEN_SHARE * (own.roles[other] - roles[place])
    return neutral._replace(event=_with_unrelated(neutral.event, own.event), roles=roles)


def as_written(text: str, replaced: Sequence[Replaced]) -> NeutralText:
    """A text in which nothing is replaced, with the places of its names."""
    return NeutralText(text, tuple(one._replace(new_start=one.start, new_end=one.end) for one in replaced))


def _with_unrelated(event: NDArray[np.float64], written: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities [kinds] of a kind of event, where the text as it is written is surely no news of markets."""
    share, left = float(written[_UNRELATED]), 1.0 - float(event[_UNRELATED])
    if share <= max(_SURELY_UNRELATED, 1.0 - left):
        return event
    found = event * ((1.0 - share) / left)
    found[_UNRELATED] = share
    return found
