"""How often a draft would write the target's token: the match rate under shared noise.

Teacher-forced: at every open position the draft reads the target's own answer so far and samples with the same noise
among the same tokens. Speculative decoding accepts exactly these tokens.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from htfi.decoding.grammar import CompiledGrammar
from htfi.decoding.kv_cache import KVRow
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.noise import noise_key
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import sample_tokens
from htfi.decoding.sequence import COMPLETION_STREAM, TokenizedRequest
from htfi.domain.errors import IntegrityError
from htfi.domain.generation import GenerationRequest, RequestRefused


@dataclass(frozen=True, slots=True)
class AgreementCounts:
    """Counts by grammar field: `num_choices` open positions, `num_matches` of them equal."""

    num_matches: dict[str, int]
    num_choices: dict[str, int]


def measure_agreement(
    draft: LocalGenerator, requests: Sequence[GenerationRequest], writings: Sequence[Sequence[int]]
) -> AgreementCounts | RequestRefused:
    """Agreement of a draft with the tokens that a target wrote for the same requests.

    Raises IntegrityError if tokens do not hold to their request's grammar.
    """
    waiting: deque[tuple[TokenizedRequest, Sequence[int]]] = deque()
    for request, tokens in zip(requests, writings, strict=True):
        asked = draft.tokenize(request)
        if isinstance(asked, RequestRefused):
            return asked
        if len(tokens) > asked.grammar.max_tokens:
            raise IntegrityError(f"{len(tokens)} tokens in a grammar of at most {asked.grammar.max_tokens}")
        if tokens:
            waiting.append((asked, tokens))
    matches: dict[str, int] = {}
    choices: dict[str, int] = {}
    while waiting:
        turn: list[_TeacherForced] = []
        try:
            while waiting and len(turn) < draft.sessions.config.max_batch:
                asked, tokens = waiting[0]
                if not draft.sessions.has_space(asked.max_length):
                    break
                opened = draft.sessions.open(asked.prompt, asked.max_length, asked.num_shared)
                turn.append(_TeacherForced(asked, tokens, opened.row, opened.logits))
                waiting.popleft()
            if not turn:
                return RequestRefused("other sequences hold the memory; ask again")
            _count_matches(draft, turn, matches, choices)
        finally:
            for reread in turn:
                draft.sessions.close(reread.row)
    return AgreementCounts(matches, choices)


class _TeacherForced(NamedTuple):
    asked: TokenizedRequest
    tokens: Sequence[int]
    row: KVRow
    first: Floats  # logits after the prompt


def _count_matches(
    draft: LocalGenerator, turn: Sequence[_TeacherForced], matches: dict[str, int], choices: dict[str, int]
) -> None:
    after = draft.sessions.extend([reread.row for reread in turn], [reread.tokens for reread in turn])
    for (asked, tokens, _, first), rest in zip(turn, after, strict=True):
        logits = np.concatenate([first[None], rest[:-1]])  # [T, V]: row t chooses token t
        form = asked.grammar
        assert isinstance(form, CompiledGrammar)  # of a reading, never of free text
        for place, step, name in form.open_positions(tokens):
            noise = np.array([noise_key(asked.request.seed, COMPLETION_STREAM, place)], np.uint64)
            drawn = sample_tokens(logits[place : place + 1], step.allowed, asked.sampling, noise)
            choices[name] = choices.get(name, 0) + 1
            matches[name] = matches.get(name, 0) + (int(drawn[0]) == int(tokens[place]))
