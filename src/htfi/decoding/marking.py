"""Marking: whether a text was chosen with noise of ours, from its tokens and the seeds that the noise may have had.

A marked text is an ordinary one whose seed follows from a secret key (`MarkKey.seed`). Sampling, drafts and replays
read the seed as any other, so the tokens are those of plain decoding with it, whatever the strategy. Who holds the key
computes the noise of every token again: where noise chose, the chosen tokens have more of it than chance gives.

The evidence is an e-value: a product of likelihood ratios, averaged over all seeds, places in the text and edits that
are tried. For a text that does not depend on the key its mean is at most 1, so `p_value` = 1 / evidence is below a with
a probability of at most a (Markov), whatever was searched, for texts of any length: nothing is left to correct.

Sources: Aaronson 2022 (the scores of Gumbel noise); Kuditipudi et al., arXiv 2307.15593 (alignment with edits); Vovk
and Wang, "E-values: calibration, combination and applications", 2021.
"""

import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from htfi.decoding.noise import Doubles, Keys, noise_hashes, noise_keys, token_counters
from htfi.decoding.ports import Floats, Ids
from htfi.decoding.sequence import COMPLETION_STREAM
from htfi.domain.errors import InvalidInput

NUM_MARK_SEEDS = 256  # a key has so many: fewer make equal texts more often, more cost evidence
MARK_KEY_BYTES = 32
MAX_MARK_POSITIONS = 256  # of a text from which an excerpt is looked for
_PURPOSE = b"htfi mark 1\0"
_SKIPPED, _INSERTED = 0.02, 0.02  # prior probability that a token was left out, that one was put in
_WHOLE_SHARE = 0.5  # of the prior: the text begins where the answer began
_ENOUGH_NATS = math.log(1e12)  # an excerpt is looked for where the whole text shows less
_SHIFT_SLACK, _TOKENS_PER_SHIFT = (
    8,
    16,
)  # how far edits are followed: positions, and one more for so many tokens
_WEIGHTS_AT_ONCE = 32_768  # fit a near cache
_BIN_BITS = 12  # of a hash's 52, by which its likelihood ratio is looked up
_BIN_SHIFT = np.uint64(52 - _BIN_BITS)
_NUM_LEVELS = 11  # of probabilities: 1, 1/2, …, 1/1024
_LEVEL_DECAY = 0.35  # of the weight from one level to the next, and the share of all levels alike
_CERTAIN_SHARES = (0.1, 0.6)  # of tokens, in texts whose tokens' probabilities are not known; both are tried
_UNKNOWN_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class MarkKey:
    """A secret of 32 bytes from which the seeds of marked texts follow. `id` names it and tells nothing about it."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != MARK_KEY_BYTES:
            raise InvalidInput(
                f"a marking key has {MARK_KEY_BYTES} bytes, not {len(self.secret)}: make one with `htfi mark key FILE`"
            )

    @property
    def id(self) -> str:
        return sha256(_PURPOSE + self.secret).hexdigest()[:16]

    def seed(self, seed: int) -> int:
        """The seed of the noise, 64 bits, for a seed that a caller gives: equal modulo NUM_MARK_SEEDS, equal noise."""
        message = _PURPOSE + (seed % NUM_MARK_SEEDS).to_bytes(4, "big")
        return int.from_bytes(hmac.digest(self.secret, message, "sha256")[:8], "big")

    def seeds(self) -> list[int]:
        """Every seed that a text marked with this key may have."""
        return [self.seed(number) for number in range(NUM_MARK_SEEDS)]


@dataclass(frozen=True, slots=True)
class MarkEvidence:
    """How strongly a text of `num_tokens` tokens points to noise of these seeds.

    `nats` is the logarithm of the e-value. `place` counts the seeds from 0: the likeliest, which means nothing where
    the p-value is not small.
    """

    num_tokens: int
    num_seeds: int
    nats: float
    place: int

    @property
    def p_value(self) -> float:
        """At most this likely for a text that was written without these seeds. Exact bound, search included."""
        return min(1.0, math.exp(-self.nats)) if self.nats < 700.0 else math.exp(-700.0)


def find_mark(
    tokens: Sequence[int],
    seeds: Sequence[int],
    max_positions: int = MAX_MARK_POSITIONS,
    odds: Doubles | None = None,
) -> MarkEvidence:
    """The evidence that these tokens were chosen with the noise of one of the seeds, perhaps edited since.

    `odds` [N] are the tokens' probabilities in the words of the model that reads the text, as far as they are known: a
    token that was nearly certain then costs nothing. They may be wrong, as they do not depend on the seeds.

    Tokens that were replaced, put in or left out cost evidence and do not hide the rest. The text is first taken as a
    whole answer; where that shows little, as an excerpt that began at any of `max_positions` positions.
    """
    if not tokens or not seeds:
        return MarkEvidence(len(tokens), len(seeds), 0.0, 0)
    nats = seed_evidence(tokens, seeds, max_positions, odds)
    return MarkEvidence(len(tokens), len(seeds), _log_mean(nats), int(nats.argmax()))


def seed_evidence(
    tokens: Sequence[int],
    seeds: Sequence[int],
    max_positions: int = MAX_MARK_POSITIONS,
    odds: Doubles | None = None,
) -> Doubles:
    """The log of the e-value of each seed alone [C], whose mean `find_mark` takes. Neither list is empty."""
    counters = token_counters(np.array(tokens, np.int64))
    readings = [np.full(len(tokens), row, np.int64) for row in range(len(_CERTAIN_SHARES))]
    if odds is not None:
        readings.append(_level_of(odds))
    levels = np.stack(readings)
    slack = _SHIFT_SLACK + len(tokens) // _TOKENS_PER_SHIFT
    nats = _mean_evidence(counters, levels, seeds, 1, slack) + math.log(_WHOLE_SHARE)
    if _log_mean(nats) < _ENOUGH_NATS:
        excerpt = _mean_evidence(counters, levels, seeds, max_positions, slack)
        nats = np.logaddexp(nats, excerpt + math.log(1.0 - _WHOLE_SHARE))
    return nats


def _log_mean(nats: Doubles) -> float:
    return float(np.logaddexp.reduce(nats)) - math.log(len(nats))


def _mean_evidence(counters: Keys, levels: Ids, seeds: Sequence[int], num_starts: int, slack: int) -> Doubles:
    """The log of each seed's e-value [C]: the mean over the starts 0 to `num_starts` − 1, over edits, and over what the
    tokens' probabilities may have been, `levels` [R, N].

    The forward algorithm over the shift of a token: the position that it had less its place in this text.
    """
    positions = np.arange(-slack, len(counters) + num_starts + slack, dtype=np.int64)
    width = num_starts + 2 * slack
    num_at_once = max(1, _WEIGHTS_AT_ONCE // (len(levels) * width))
    return np.concatenate(
        [
            _forward(
                _position_keys(seeds[at : at + num_at_once], positions),
                counters,
                levels,
                slack,
                num_starts,
                width,
            )
            for at in range(0, len(seeds), num_at_once)
        ]
    )


def _position_keys(seeds: Sequence[int], positions: Ids) -> Keys:
    """The noise keys of each seed and position [C, P]. Negative positions are never reached."""
    streams = np.full_like(positions, COMPLETION_STREAM)
    return np.stack([noise_keys(seed, streams, positions) for seed in seeds])


def _forward(keys: Keys, counters: Keys, levels: Ids, origin: int, num_starts: int, width: int) -> Doubles:
    """Keys [C, P], tokens' counters [N] and levels [R, N] → log e-values [C]; weights by shift are [R, C, W].

    Along each way through the edits every position is used once at most, so its likelihood ratios are independent.
    """
    num_seeds, num_readings = len(keys), len(levels)
    weights = np.zeros((num_readings, num_seeds, width))
    weights[:, :, origin : origin + num_starts] = 1.0 / num_starts
    moved = np.empty_like(weights)
    nats = np.zeros((num_readings, num_seeds))
    for place in range(len(counters)):
        hashes = noise_hashes(keys[:, place : place + width].reshape(-1), counters[place : place + 1])
        hashes >>= _BIN_SHIFT
        ratios = _RATIOS[levels[:, place]].take(hashes.view(np.int64), axis=1)  # [R, C·W]
        np.multiply(weights, 1.0 - _SKIPPED, out=moved)  # [R, C, W]
        moved[..., 1:] += _SKIPPED * weights[..., :-1]
        np.multiply(moved, ratios.reshape(weights.shape), out=weights)
        weights[..., :-1] += _INSERTED / (1.0 - _INSERTED) * moved[..., 1:]
        total = weights.sum(axis=2)
        weights /= total[..., None]
        nats += np.log(total)
    each = nats + len(counters) * math.log(1.0 - _INSERTED)
    return np.logaddexp.reduce(each, axis=0) - math.log(num_readings)


def _level_of(odds: Doubles) -> Ids:
    """The row of the table for tokens of these probabilities [N]; the first rows are for unknown ones."""
    return len(_CERTAIN_SHARES) + np.clip(
        np.rint(-np.log2(np.maximum(odds, 1e-12))), 0, _NUM_LEVELS - 1
    ).astype(np.int64)


def _ratio_table() -> Doubles:
    """How much likelier a hash is for a chosen token than for any, by level and the hash's first bits.

    A token of probability p that noise chose has u = 1 - hash / 2^52 with density u^(1/p - 1) / p, any other a uniform
    one. Probabilities are not known surely, so the ratio is a mean over p = 1/2^level, most of it near the level that
    is named. Each bin has the ratio at its largest hash, where it is smallest, so that its mean over fair hashes is at
    most 1.
    """
    least_u = np.arange(2**_BIN_BITS - 1, -1, -1) / 2**_BIN_BITS
    at_level = np.array([2.0**level * least_u ** (2.0**level - 1.0) for level in range(_NUM_LEVELS)])
    unknown = np.array(
        [[share, *[(1.0 - share) / (_NUM_LEVELS - 1)] * (_NUM_LEVELS - 1)] for share in _CERTAIN_SHARES]
    )
    steps = np.abs(np.subtract.outer(np.arange(_NUM_LEVELS), np.arange(_NUM_LEVELS)))
    near = _LEVEL_DECAY**steps
    near /= near.sum(axis=1, keepdims=True)
    return np.vstack([unknown, _UNKNOWN_SHARE * unknown[0] + (1.0 - _UNKNOWN_SHARE) * near]) @ at_level


_RATIOS = _ratio_table()


def token_odds(
    logits: Floats, tokens: Sequence[int], allowed: Ids, temperature: float
) -> tuple[Doubles, float]:
    """The probability of each token [N] before which a model gave logits [N, V], among the allowed ones; and the
    capacity of the text in nats (`choice_nats`).

    A token that is not allowed was put in by somebody else: its probability is 1, and says nothing.
    """
    odds = _allowed_odds(logits, allowed, temperature)
    places = np.minimum(np.searchsorted(allowed, tokens), len(allowed) - 1)
    found = odds[np.arange(len(odds)), places]
    return np.where(allowed[places] == tokens, found, 1.0), _entropy_and_capacity(odds)[1]


def choice_nats(logits: Floats, allowed: Ids, temperature: float) -> tuple[float, float]:
    """The entropy and the capacity of the tokens before which a model gave logits [N, V], in nats.

    The capacity is the most evidence that noise leaves in such a text, on average: for each token the entropy less the
    chance that two draws differ, H - (1 - Σp²), which is the mean log ratio of a chosen token. It is 0 where a form
    leaves one token.
    """
    return _entropy_and_capacity(_allowed_odds(logits, allowed, temperature))


def _allowed_odds(logits: Floats, allowed: Ids, temperature: float) -> Doubles:
    scaled = logits[:, allowed].astype(np.float64) / temperature
    scaled -= scaled.max(axis=1, keepdims=True)
    odds = np.exp(scaled)
    odds /= odds.sum(axis=1, keepdims=True)
    return odds


def _entropy_and_capacity(odds: Doubles) -> tuple[float, float]:
    entropy = -(odds * np.log(np.maximum(odds, 1e-300))).sum(axis=1)
    return float(entropy.sum()), float((entropy - 1.0 + (odds**2).sum(axis=1)).sum())
