"""Sampling a token: argmax of logits over temperature plus the shared noise, among the allowed tokens.

Equal logits and keys give equal tokens on any machine. `rank_tokens` ranks tokens by the same score: the first is the
sampled one, and the next are what a target with slightly different logits picks, far more often than the next likeliest
(D2). The choice is compiled in C if possible, with the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.noise import (
    GUMBEL_BOUNDS,
    Doubles,
    Keys,
    gumbel_at,
    gumbel_bounds,
    gumbel_from_hashes,
    noise_hashes,
    token_counters,
)
from htfi.decoding.ports import Floats, Ids
from htfi.domain import portable_math as exact
from htfi.domain.errors import InvalidInput

_SCORES_PER_CHUNK = 8192  # scores at once: more would not fit the processor's nearest cache


@dataclass(frozen=True, slots=True)
class AllowedTokens:
    """Token ids to choose among, rising, and their counters in the noise."""

    ids: Ids
    counters: Keys

    @classmethod
    def of(cls, ids: Ids) -> "AllowedTokens":
        return cls(ids, token_counters(ids))


class SamplingParams(NamedTuple):
    """How a token is sampled from logits; temperature 0 takes the likeliest. Draft and target use the same.

    `top_k` keeps the k likeliest allowed tokens (0 keeps all), `top_p` the fewest likeliest whose probabilities reach p
    (1 keeps all), after temperature and top_k.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    @property
    def truncates(self) -> bool:
        return self.temperature > 0.0 and (self.top_k > 0 or self.top_p < 1.0)


def check_sampling_params(sampling: SamplingParams) -> None:
    """Raises InvalidInput, naming the value out of range."""
    temperature, top_k, top_p = sampling
    if not (temperature == 0.0 or 1e-3 <= temperature <= 1e3):
        raise InvalidInput(f"temperature {temperature}: give 0, or a number between 0.001 and 1000")
    if top_k < 0:
        raise InvalidInput(f"top_k {top_k}: give 0 for all tokens, or a number of them")
    if not 0.0 < top_p <= 1.0:
        raise InvalidInput(f"top_p {top_p}: give a probability above 0; 1 keeps all tokens")


def truncation_mask(scaled: Doubles, sampling: SamplingParams) -> NDArray[np.bool_]:
    """Which allowed tokens top_k and top_p keep: scores over temperature [N, C] → [N, C].

    Ties go to the lowest id. A row whose maximum is not finite keeps all.
    """
    broken = ~np.isfinite(scaled.max(axis=1, keepdims=True))
    scaled = np.where(broken, 0.0, scaled)
    order = np.argsort(-scaled, axis=1, kind="stable")  # likeliest first
    stays = np.ones(scaled.shape, np.bool_)
    if sampling.top_k:
        stays[:, sampling.top_k :] = False
    if sampling.top_p < 1.0:
        ranked = np.take_along_axis(scaled, order, axis=1)
        below = np.maximum(ranked - ranked[:, :1], -700.0)
        weights = np.where(stays, exact.exp(below), 0.0)
        reached = np.cumsum(weights, axis=1)  # summed in order: the same bits everywhere
        stays &= reached - weights < sampling.top_p * reached[:, -1:]
    mask = np.empty_like(stays)
    np.put_along_axis(mask, order, stays, axis=1)
    return mask | broken


def sample_tokens(logits: Floats, admitted: AllowedTokens, sampling: SamplingParams, row_keys: Keys) -> Ids:
    """One token per row: logits [N, V], C allowed ids, keys [N] → tokens [N]; −1 if a logit is not finite.

    At temperature 0 the keys have no effect. Ties go to the lowest id.
    """
    if not sampling.truncates:
        compiled = compiled_choice(logits, admitted.ids, admitted.counters, sampling.temperature, row_keys)
        if compiled is not None:
            return compiled
    step = max(_SCORES_PER_CHUNK // max(len(admitted.ids), 1), 1)
    if len(logits) > step:
        groups = [slice(begin, begin + step) for begin in range(0, len(logits), step)]
        return np.concatenate([sample_tokens(logits[g], admitted, sampling, row_keys[g]) for g in groups])
    scores = logits.take(admitted.ids, axis=1)  # [N, C]
    temperature = sampling.temperature
    if temperature == 0.0:
        best = scores.argmax(axis=1)
        top = scores[np.arange(len(scores)), best]
        return np.where(np.isfinite(top), admitted.ids[best], -1)
    scaled = scores.astype(np.float64)
    if temperature != 1.0:
        scaled /= temperature
    if sampling.truncates:
        scaled[~truncation_mask(scaled, sampling)] = -np.inf
    bits = noise_hashes(row_keys, admitted.counters)
    low, high = gumbel_bounds(bits)
    low += scaled
    high += scaled
    floor = low.max(
        axis=1
    )  # the best score is at least this; rounding keeps the order, so no slack is needed
    rows, places = (high >= floor[:, None]).nonzero()  # by row, then by token; none where the floor is NaN
    if len(rows) == len(floor) and np.isfinite(floor).all():
        return admitted.ids[places]
    exact = scaled[rows, places] + gumbel_from_hashes(bits[rows, places])
    return _argmax_by_row(rows, exact, admitted.ids[places], np.isfinite(floor))


def _argmax_by_row(rows: Ids, scores: Doubles, tokens: Ids, finite: NDArray[np.bool_]) -> Ids:
    """For each row the token of its largest score, the first of equals; −1 if it is not finite."""
    best = np.full(len(finite), -1, np.int64)
    starts = np.flatnonzero(np.diff(rows, prepend=-1))  # of each row that has candidates
    if len(starts):
        most = np.maximum.reduceat(scores, starts).repeat(np.diff(starts, append=len(rows)))
        at = np.flatnonzero((scores == most) & finite[rows])[::-1]
        best[rows[at]] = tokens[at]  # the last assignment wins: the first of equals
    return best


class SamplingPosition(NamedTuple):
    """One position of one sequence to sample: the allowed tokens, the parameters and the noise key."""

    admitted: AllowedTokens
    sampling: SamplingParams
    key: int


def sample_positions(logits: Sequence[Floats], places: Sequence[SamplingPosition]) -> list[int]:
    """One token per position from its own logits [V]; positions with equal settings are sampled together."""
    if len(places) == 1:
        (place,) = places
        row_key = np.array([place.key], np.uint64)
        return sample_tokens(logits[0][None], place.admitted, place.sampling, row_key).tolist()
    tokens = [-1] * len(places)
    groups: dict[tuple[int, SamplingParams], list[int]] = {}
    for at, (admitted, sampling, _) in enumerate(places):
        groups.setdefault((id(admitted), sampling), []).append(at)
    for (_, sampling), members in groups.items():
        rows = np.array([logits[at] for at in members])
        row_keys = np.array([places[at].key for at in members], np.uint64)
        drawn = sample_tokens(rows, places[members[0]].admitted, sampling, row_keys)
        for at, token in zip(members, drawn.tolist(), strict=True):
            tokens[at] = token
    return tokens


try:
    from htfi.decoding import choosing_core as core
except ImportError:  # the package was built without a C compiler
    core = None
else:
    core.use_bounds(*GUMBEL_BOUNDS)


def has_compiled_choice() -> bool:
    """Whether the choice in C was compiled."""
    return core is not None


def compiled_choice(
    logits: Floats, ids: Ids, counters: Keys, temperature: float, row_keys: Keys
) -> Ids | None:
    """`sample_tokens` without top_k and top_p: one token per row; None if Python must do it.

    Shapes: logits [N, V], ids (rising) and their counters [C], keys [N].
    """
    if core is None:
        return None
    tokens: Ids = np.empty(len(logits), np.int64)
    return tokens if core.choose(logits, ids, counters, row_keys, tokens, temperature) else None


class RankedTokens(NamedTuple):
    """Tokens, best first, and the distance of each from the first in logits. Empty if a logit is not finite."""

    tokens: list[int]
    gaps: list[float]


def rank_tokens(
    logits: Floats, admitted: AllowedTokens, sampling: SamplingParams, row_keys: Keys, num: int
) -> Ids:
    """The best `num` tokens of each row: logits [N, V], keys [N] → [N, num].

    −1 if fewer are allowed or kept, and for a whole row if a logit is not finite.
    """
    rest = logits.copy()
    temperature = sampling.temperature
    if sampling.truncates:
        stays = truncation_mask(logits.take(admitted.ids, axis=1).astype(np.float64) / temperature, sampling)
        rows, gone = (~stays).nonzero()
        rest[rows, admitted.ids[gone]] = -np.inf
    tokens = np.empty((num, len(logits)), np.int64)
    rows = np.arange(len(logits))
    for place in range(num):  # sampled once those before are excluded
        tokens[place] = sample_tokens(rest, admitted, SamplingParams(temperature), row_keys)
        rest[rows, tokens[place]] = -np.inf
    return tokens.T


def rank_positions(
    logits: Sequence[Floats], places: Sequence[SamplingPosition], num: int
) -> list[RankedTokens]:
    """The best `num` tokens at each position from its own logits [V]."""
    found = [RankedTokens([], [])] * len(places)
    groups: dict[tuple[int, SamplingParams], list[int]] = {}
    for at, (admitted, sampling, _) in enumerate(places):
        groups.setdefault((id(admitted), sampling), []).append(at)
    for (_, sampling), members in groups.items():
        rows = np.array([logits[at] for at in members])
        row_keys = np.array([places[at].key for at in members], np.uint64)
        tokens = rank_tokens(rows, places[members[0]].admitted, sampling, row_keys, num).tolist()
        for at, some in zip(members, tokens, strict=True):
            size = some.index(-1) if -1 in some else num
            found[at] = _with_gaps(some[:size], logits[at], sampling.temperature, places[at].key)
    return found


def _with_gaps(tokens: list[int], logits: Floats, temperature: float, place_key: int) -> RankedTokens:
    scores = logits[tokens].tolist()
    if temperature:
        scores = [
            score + temperature * gumbel_at(place_key, token)
            for score, token in zip(scores, tokens, strict=True)
        ]
    return RankedTokens(tokens, [scores[0] - score for score in scores] if tokens else [])
