"""Sampling price paths: N futures of H price tokens after one prefix; path n has noise stream n + 1.

Wiring offers it to forecasting. A draft and a plan make it faster and change no bin.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np

from htfi.decoding.config import MAX_FORKS
from htfi.decoding.noise import noise_keys
from htfi.decoding.ports import Ids
from htfi.decoding.sampling import SamplingParams, check_sampling_params, sample_tokens
from htfi.decoding.sessions import KVSessions
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import RequestRefused
from htfi_train.paths.drawing import Clock, PathDrawing, PathSamplingStats, PriceTokenSampler
from htfi_train.paths.plan import LeastTime, PathPlan
from htfi_train.paths.rows import PathRows

FIRST_PATH_STREAM = 1  # stream 0 is the answer's
_UNTRUNCATED = SamplingParams(temperature=1.0)


class SampledPaths(NamedTuple):
    """Bins [N, H], and the cost of sampling them."""

    bins: Ids
    rounds: PathSamplingStats


def sample_paths(
    sessions: KVSessions,
    vocabulary: Vocabulary,
    prefix: Sequence[int],
    num_paths: int,
    horizon: int,
    *,
    seed: int,
    sampling: SamplingParams = _UNTRUNCATED,
    shared: int = 0,
    draft: KVSessions | None = None,
    plan: PathPlan | None = None,
    clock: Clock = time.perf_counter,
) -> SampledPaths | RequestRefused:
    """Paths that the network samples after `prefix`, whose last token opens one: bins [N, H].

    Paths that do not fit the memory together are sampled in turns. Neither that, nor `draft`, nor `plan` changes a bin,
    as long as the engine's logits do not depend on the cut into passes. `draft` has the vocabulary of `sessions` and is
    used if the plan asks for it and it has room. The default plan is least time at nominal costs, new for each call; a
    plan that is kept continues to learn. The clock only measures. Raises InvalidInput for a vocabulary without price
    tokens, or a draft with another.
    """
    _check_path_request(vocabulary, num_paths, horizon)
    check_sampling_params(sampling)
    if draft is not None and draft.network.shape.vocab_size != sessions.network.shape.vocab_size:
        raise InvalidInput("draft and target have vocabularies of different sizes: take two of one family")
    limit = len(prefix) + horizon
    if refusal := sessions.refusal(limit):
        return refusal
    if draft is not None and draft.refusal(limit):
        draft = None
    begun_s = clock()
    plan = LeastTime() if plan is None else plan
    rounds = PathSamplingStats()
    ranks = np.empty((num_paths, horizon), np.int64)
    begin = 0
    while begin < num_paths:
        num = min(sessions.num_rows_free(limit), MAX_FORKS, num_paths - begin)
        if num == 0:
            return RequestRefused("other sequences hold the memory; ask again")
        streams: Ids = np.arange(begin, begin + num) + FIRST_PATH_STREAM
        law = PriceTokenSampler(vocabulary.prices, sampling, seed, streams, horizon)
        with ExitStack() as held:
            forks = held.enter_context(sessions.forked(prefix, limit, num, shared))
            target = PathRows(sessions, forks.rows)
            drafter = None if draft is None else _DraftRowsOpener(draft, prefix, limit, shared, held)
            drawing = PathDrawing(target, drafter, law, num, horizon, clock)
            if not drawing.draw(forks.logits, plan, rounds):
                target.zero()
                return RequestRefused("the network gave a logit that is not finite")
        ranks[begin : begin + num] = drawing.ranks
        begin += num
    bin_of_rank = np.argsort(vocabulary.price_ids)
    rounds.total_ms = 1e3 * (clock() - begun_s)
    return SampledPaths(bin_of_rank[ranks], rounds)


class _DraftRowsOpener(NamedTuple):
    """Opens the draft's rows when they are first needed: reading the prefix costs time."""

    sessions: KVSessions
    prefix: Sequence[int]
    limit: int
    shared: int
    held: ExitStack

    def __call__(self, num_rows: int) -> PathRows | None:
        if self.sessions.num_rows_free(self.limit) < num_rows:
            return None
        forks = self.sessions.forked(self.prefix, self.limit, num_rows, self.shared)
        return PathRows(self.sessions, self.held.enter_context(forks).rows)


def count_path_matches(
    sessions: KVSessions,
    vocabulary: Vocabulary,
    prefix: Sequence[int],
    bins: Ids,
    *,
    seed: int,
    sampling: SamplingParams = _UNTRUNCATED,
    shared: int = 0,
) -> tuple[int, int] | RequestRefused:
    """How many of the bins [N, H] of another network this one would sample after the same past, and their number."""
    num_paths, horizon = bins.shape
    _check_path_request(vocabulary, num_paths, horizon)
    check_sampling_params(sampling)
    limit = len(prefix) + horizon
    if refusal := sessions.refusal(limit):
        return refusal
    tokens = vocabulary.price_ids[bins]  # [N, H]
    steps: Ids = np.arange(horizon, dtype=np.int64)
    num_matches = begin = 0
    while begin < num_paths:
        num = min(sessions.num_rows_free(limit), sessions.config.max_batch, num_paths - begin)
        if num == 0:
            return RequestRefused("other sequences hold the memory; ask again")
        turn = tokens[begin : begin + num]
        with sessions.forked(prefix, limit, num, shared) as forks:
            after = sessions.extend(forks.rows, turn.tolist())
        for path in range(num):
            logits = np.concatenate([forks.logits[None], after[path][:-1]])  # [H, V]
            noise = noise_keys(seed, np.full_like(steps, begin + path + FIRST_PATH_STREAM), steps)
            same = sample_tokens(logits, vocabulary.prices, sampling, noise) == turn[path]
            num_matches += int(np.count_nonzero(same))
        begin += num
    return num_matches, bins.size


def _check_path_request(vocabulary: Vocabulary, num_paths: int, horizon: int) -> None:
    if vocabulary.bins is None:
        raise InvalidInput("this model's vocabulary has no price tokens, so it cannot sample paths")
    if num_paths < 1 or horizon < 1:
        raise InvalidInput(f"{num_paths} paths of {horizon} steps: give at least one of each")
