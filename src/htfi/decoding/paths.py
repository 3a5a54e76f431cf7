"""Sampling price paths: N futures of H price tokens after one prefix, stream n + 1 of the noise for path n.

Plain sampling, one token of every path a pass. Wiring offers it to forecasting; faster ways must give the same bins.
"""

from collections.abc import Sequence

import numpy as np

from htfi.decoding.noise import keys
from htfi.decoding.ports import Ids
from htfi.decoding.sampling import Sampling, check_sampling, choose
from htfi.decoding.sessions import Forks, Sessions
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import InvalidInput
from htfi.domain.writing import Refusal

FIRST_PATH_STREAM = 1  # stream 0 is the answer's
_PLAIN_LAW = Sampling(temperature=1.0)


def sample_paths(
    sessions: Sessions,
    vocabulary: Vocabulary,
    prefix: Sequence[int],
    num_paths: int,
    horizon: int,
    *,
    seed: int,
    sampling: Sampling = _PLAIN_LAW,
    shared: int = 0,
) -> Ids | Refusal:
    """Bins [N, H] that the network draws after `prefix`, whose last token opens a path.

    Paths that do not fit the memory together are drawn in turns, which changes no path. Raises InvalidInput for a
    vocabulary without price tokens.
    """
    _check(vocabulary, num_paths, horizon)
    check_sampling(sampling)
    limit = len(prefix) + horizon
    if refusal := sessions.refusal(limit):
        return refusal
    bins = np.empty((num_paths, horizon), np.int64)
    begin = 0
    while begin < num_paths:
        num = min(sessions.num_rows_free(limit), sessions.config.max_forks, num_paths - begin)
        if num == 0:
            return Refusal("the memory is held by other sequences; ask again")
        streams = np.arange(begin, begin + num) + FIRST_PATH_STREAM
        with sessions.forked(prefix, limit, num, shared) as forks:
            if not _draw(sessions, vocabulary, forks, bins[begin : begin + num], seed, streams, sampling):
                for row in forks.rows:
                    sessions.arena.wipe(row)
                return Refusal("the network gave a logit that is not a finite number")
        begin += num
    return bins


def path_agreement(
    sessions: Sessions,
    vocabulary: Vocabulary,
    prefix: Sequence[int],
    bins: Ids,
    *,
    seed: int,
    sampling: Sampling = _PLAIN_LAW,
    shared: int = 0,
) -> tuple[int, int] | Refusal:
    """Of the bins [N, H] that another network drew, how many this one would draw after the same past; and how many."""
    num_paths, horizon = bins.shape
    _check(vocabulary, num_paths, horizon)
    check_sampling(sampling)
    limit = len(prefix) + horizon
    if refusal := sessions.refusal(limit):
        return refusal
    tokens = vocabulary.price_ids[bins]  # [N, H]
    steps: Ids = np.arange(horizon, dtype=np.int64)
    num_matches = begin = 0
    while begin < num_paths:
        num = min(sessions.num_rows_free(limit), sessions.config.max_batch, num_paths - begin)
        if num == 0:
            return Refusal("the memory is held by other sequences; ask again")
        turn = tokens[begin : begin + num]
        with sessions.forked(prefix, limit, num, shared) as forks:
            after = sessions.extend(forks.rows, turn.tolist())
        for path in range(num):
            logits = np.concatenate([forks.logits[None], after[path][:-1]])  # [H, V]
            noise = keys(seed, np.full_like(steps, begin + path + FIRST_PATH_STREAM), steps)
            same = choose(logits, vocabulary.prices, sampling, noise) == turn[path]
            num_matches += int(np.count_nonzero(same))
        begin += num
    return num_matches, bins.size


def _draw(
    sessions: Sessions,
    vocabulary: Vocabulary,
    forks: Forks,
    bins: Ids,
    seed: int,
    streams: Ids,
    sampling: Sampling,
) -> bool:
    """Fill bins [N, H]; false where a logit is not finite."""
    num_paths, horizon = bins.shape
    bin_of = np.full(len(forks.logits), -1)
    bin_of[vocabulary.price_ids] = np.arange(len(vocabulary.price_ids))
    logits = np.broadcast_to(forks.logits, (num_paths, len(forks.logits)))  # [N, V]
    for step in range(horizon):
        noise = keys(seed, streams, np.full_like(streams, step))
        tokens = choose(logits, vocabulary.prices, sampling, noise)
        if tokens.min() < 0:
            return False
        bins[:, step] = bin_of[tokens]
        if step + 1 < horizon:
            after = sessions.extend(forks.rows, tokens[:, None].tolist())
            logits = np.concatenate(after)
    return True


def _check(vocabulary: Vocabulary, num_paths: int, horizon: int) -> None:
    if vocabulary.bins is None:
        raise InvalidInput("this model's vocabulary has no price tokens, so it draws no paths")
    if num_paths < 1 or horizon < 1:
        raise InvalidInput(f"{num_paths} paths of {horizon} steps: take at least one of each")
