"""How often a draft would have written the target's token: the shared-noise match rate. Evaluation asks it.

Teacher-forced: at every place that its form left open, the draft reads the target's own answer so far and chooses
with the same noise among the same tokens. Speculative decoding accepts exactly these.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from htfi.decoding.author import LocalAuthor
from htfi.decoding.kv import Row
from htfi.decoding.noise import key
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import choose
from htfi.decoding.stem import ANSWER_STREAM, Asked
from htfi.domain.errors import IntegrityError
from htfi.domain.writing import Refusal, Request


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts by field of the form: `num_choices` places left open, `num_matches` of them the same."""

    num_matches: dict[str, int]
    num_choices: dict[str, int]

    @property
    def share(self) -> float:
        """Over all fields; 1 where nothing was open."""
        total = sum(self.num_choices.values())
        return sum(self.num_matches.values()) / total if total else 1.0


def agreement(
    draft: LocalAuthor, requests: Sequence[Request], writings: Sequence[Sequence[int]]
) -> Agreement | Refusal:
    """Agreement of a draft with the tokens that a target wrote for the same requests, one writing each.

    Raises IntegrityError where a writing is not of its request's form.
    """
    waiting: deque[tuple[Asked, Sequence[int]]] = deque()
    for request, tokens in zip(requests, writings, strict=True):
        asked = draft.ask(request)
        if isinstance(asked, Refusal):
            return asked
        if len(tokens) > asked.form.longest:
            raise IntegrityError(
                f"a writing of {len(tokens)} tokens in a form of at most {asked.form.longest}"
            )
        if tokens:
            waiting.append((asked, tokens))
    matches: dict[str, int] = {}
    choices: dict[str, int] = {}
    while waiting:
        turn: list[_Reread] = []
        try:
            while waiting and len(turn) < draft.sessions.config.max_batch:
                asked, tokens = waiting[0]
                if not draft.sessions.has_room(asked.limit):
                    break
                opened = draft.sessions.open(asked.prompt, asked.limit, asked.num_shared)
                turn.append(_Reread(asked, tokens, opened.row, opened.logits))
                waiting.popleft()
            if not turn:
                return Refusal("the memory is held by other sequences; ask again")
            _count(draft, turn, matches, choices)
        finally:
            for reread in turn:
                draft.sessions.close(reread.row)
    return Agreement(matches, choices)


class _Reread(NamedTuple):
    asked: Asked
    tokens: Sequence[int]
    row: Row
    first: Floats  # logits after the prompt


def _count(
    draft: LocalAuthor, turn: Sequence[_Reread], matches: dict[str, int], choices: dict[str, int]
) -> None:
    after = draft.sessions.extend([reread.row for reread in turn], [reread.tokens for reread in turn])
    for (asked, tokens, _, first), rest in zip(turn, after, strict=True):
        logits = np.concatenate([first[None], rest[:-1]])  # [T, V]: row t chooses token t
        for place, step, name in asked.form.choices(tokens):
            noise = np.array([key(asked.request.seed, ANSWER_STREAM, place)], np.uint64)
            drawn = choose(logits[place : place + 1], step.admitted, asked.sampling, noise)
            choices[name] = choices.get(name, 0) + 1
            matches[name] = matches.get(name, 0) + (int(drawn[0]) == int(tokens[place]))
