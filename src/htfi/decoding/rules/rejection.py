"""Rejection sampling of drafts, classic and entropy-aware: rules besides the shared noise.

Answers under the classic rule follow the target's distribution, but which answer a seed gives depends on what was
drafted: a replay must draft alike. Any strategy may be used. Drafts sampled from the draft's distribution
(`DraftTree.draft_probs`, as `SampledStrategy` gives it) are accepted most often; a guess without it counts as certain.

Random numbers come from the shared noise's counter, so that a run replays bit for bit, but never from the answer's own
stream s. Drafts of a position read stream DRAFT_STREAMS + s, acceptance reads ACCEPT_STREAMS + s (one number per token,
hence per attempt), and the token sampled in the end reads RESAMPLE_STREAMS + s. A position is decided once, so none of
the latter is used twice. Drafts of a position that a round did not reach are sampled alike again, which is harmless
because nothing depended on them (see `accept_tree`).

The entropy-aware rule CHANGES the distribution: where both models are uncertain alike, an accepted token is sampled
again. Probabilities that a forecast was calibrated on no longer hold, so no forecast distribution may be sampled with
it.

Sources: Leviathan, Kalman and Matias 2023; Chen et al. 2023, arXiv 2302.01318; several siblings without replacement:
SpecInfer, arXiv 2305.09781, and recursive rejection sampling, arXiv 2402.14160; entropy-aware: EASD, arXiv 2512.23765.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec import UnsetType
from msgspec.structs import replace

from htfi.decoding.draft_tree import DraftTree, node_depths
from htfi.decoding.noise import Doubles, Keys, gumbel_bounds, gumbel_from_hashes, noise_hashes, noise_key
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import AllowedTokens, SamplingParams, truncation_mask
from htfi.decoding.sequence import COMPLETION_STREAM, SequenceState
from htfi.decoding.strategy import DraftVerification
from htfi.domain import portable_math as exact
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.generation import RuleTrace


@dataclass(frozen=True, slots=True)
class EntropyAwareRule:
    """Sample an accepted token again if both distributions have more entropy than `threshold_nats` and share at least
    the fraction `overlap` of their `top_n` likeliest tokens. Changes the distribution.
    """

    threshold_nats: float = 2.0
    top_n: int = 10
    overlap: float = 0.8

    def __post_init__(self) -> None:
        if not self.threshold_nats >= 0.0:
            raise InvalidInput("entropy-aware threshold_nats: give a number ≥ 0")
        if self.top_n < 1:
            raise InvalidInput("entropy-aware top_n: give at least 1")
        if not 0.0 <= self.overlap <= 1.0:
            raise InvalidInput("entropy-aware overlap: give a fraction between 0 and 1")

    def resamples(self, target: Doubles, draft: Doubles) -> bool:
        """Whether a token accepted under these distributions [C] is excluded and sampled again."""
        if min(entropy_nats(target), entropy_nats(draft)) <= self.threshold_nats:
            return False
        num = min(self.top_n, len(target))
        shared = np.intersect1d(_most_likely(target, num), _most_likely(draft, num))
        return len(shared) >= self.overlap * num


def entropy_nats(law: Doubles) -> float:
    """Entropy of a distribution [C]; 0 for a point mass."""
    held = law[law > 0.0]
    return float(-np.cumsum(held * exact.log(held))[-1])


def without_accepted(target: Doubles, place: int) -> Doubles:
    """The target's weights [C] without one token; unchanged if it is the only one."""
    rest = target.copy()
    rest[place] = 0.0
    return rest if rest.any() else target


def _most_likely(law: Doubles, num: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.argsort(-law, kind="stable")[:num]


DRAFT_STREAMS = 1 << 32  # path n reads stream n + 1, so these start far above
ACCEPT_STREAMS = 2 << 32
RESAMPLE_STREAMS = 3 << 32
ROOT = -1  # the accepted text, as the node before all others
_COIN_BITS = 2.0**-52
_ROUGH = 1e-9  # more than numpy's logarithm differs between machines


class SiblingVerdict(NamedTuple):
    """Which sibling is accepted (−1: none), and the weights [C] to sample a token from otherwise."""

    taken: int
    left: Doubles


class SiblingSet(NamedTuple):
    """The children of one node in the order they were sampled, each with its token index and its acceptance number.

    `target` [C] is the target's distribution there, `draft` [C] the one that the children were really sampled from,
    None if they count as certain.
    """

    nodes: Sequence[int]
    places: Sequence[int]
    flips: Sequence[float] | Doubles
    target: Doubles
    draft: Doubles | None


class AcceptedPath(NamedTuple):
    """The accepted nodes, root to leaf, and the index of the target's next token (−1 if nothing may follow)."""

    path: list[int]
    place: int


def token_probabilities(logits: Floats, admitted: AllowedTokens, sampling: SamplingParams) -> Doubles:
    """Probabilities [N, C] of the allowed tokens: logits [N, V] with the temperature and truncation of `sample_tokens`.

    A point mass at temperature 0. A row of NaN if a logit is not finite.
    """
    scores = logits.take(admitted.ids, axis=1)  # [N, C]
    finite = np.isfinite(scores.max(axis=1, keepdims=True))
    scores = np.where(finite, scores, np.float32(0.0))
    if sampling.temperature == 0.0:
        law = np.zeros(scores.shape)
        law[np.arange(len(law)), scores.argmax(axis=1)] = 1.0
        return np.where(finite, law, np.nan)
    scaled = scores.astype(np.float64) / sampling.temperature
    depth = scaled - scaled.max(axis=1, keepdims=True)
    stays = depth > -700.0  # the range of `exact.exp`
    if sampling.truncates:
        stays &= truncation_mask(scaled, sampling)
    weights = np.where(stays, exact.exp(np.where(stays, depth, 0.0)), 0.0)
    return np.where(finite, weights / _total(weights)[:, None], np.nan)


def sample_without_replacement(
    weights: Doubles, admitted: AllowedTokens, row_keys: Keys, num: int = 1
) -> list[int]:
    """Up to `num` different indices sampled in order from weights [C], without replacement.

    The largest sums of log weight and Gumbel noise; weights need not sum to 1. Ties go to the lowest index. Source:
    Gumbel top-k, arXiv 1903.06059.
    """
    places = weights.nonzero()[0]
    (bits,) = noise_hashes(row_keys, admitted.counters[places])
    if len(places) > num:  # exact noise and logarithms are expensive: only for candidates within the bounds
        low, high = gumbel_bounds(bits)
        rough = np.log(weights[places])
        floor = np.partition(rough + low, -num)[-num] - _ROUGH
        few = (rough + high >= floor).nonzero()[0]
        places, bits = places[few], bits[few]
    if len(places) == 1:
        return places.tolist()
    order = np.argsort(-(exact.log(weights[places]) + gumbel_from_hashes(bits)), kind="stable")
    return places[order[:num]].tolist()


def acceptance_uniforms(row_keys: Keys, admitted: AllowedTokens, places: Sequence[int]) -> Doubles:
    """A uniform number in (0, 1) for each of several tokens at one position."""
    bits = noise_hashes(row_keys, admitted.counters[np.asarray(places, np.int64)])[0]
    return (bits.astype(np.float64) + 0.5) * _COIN_BITS


def verify_siblings(
    target: Doubles, draft: Doubles | None, siblings: Sequence[int], flips: Sequence[float] | Doubles
) -> SiblingVerdict:
    """Try the siblings in order: the resulting token has exactly the target's distribution [C].

    `draft` is the distribution [C] that they were REALLY sampled from, in this order without replacement: after
    temperature, truncation and rounding. None: they were not sampled but certain, as from a look-up. `flips` are
    uniform numbers in (0, 1), one for each, independent of the siblings.

    If none is accepted, sample the token from `left`. Raises IntegrityError for a sibling that `draft` cannot have
    given.
    """
    left, still = target, draft
    for index, (place, flip) in enumerate(zip(siblings, flips, strict=True)):
        here = _point_mass(len(target), place) if still is None else still
        if not here[place] > 0.0:
            raise IntegrityError(
                "a drafted token that its distribution never gives: pass the distribution that it was sampled from"
            )
        if is_accepted(left[place], here[place], flip):
            return SiblingVerdict(index, left)
        left = residual_distribution(left, here)
        still = None if still is None else without_token(still, place)
    return SiblingVerdict(-1, left)


def is_accepted(target: float, draft: float, flip: float) -> bool:
    """True with probability min(1, target/draft)."""
    return flip * draft < target


def residual_distribution(target: Doubles, draft: Doubles) -> Doubles:
    """The positive part of target minus draft [C], normalised; the target's own if that is zero."""
    above = np.maximum(target - draft, 0.0)
    total = float(_total(above))
    return above / total if total > 0.0 else target


def without_token(law: Doubles, place: int) -> Doubles:
    """The distribution [C] of the next sibling once this one is excluded; zeros if none is left."""
    rest = law.copy()
    rest[place] = 0.0
    total = float(_total(rest))
    return rest / total if total > 0.0 else rest


def accept_tree(
    look: Callable[[int], SiblingSet | None],
    redraw: Callable[[int, Doubles], int],
    entropy: EntropyAwareRule | None = None,
) -> AcceptedPath:
    """Walk a drafted tree from the accepted text down; the resulting tokens have exactly the target's distribution.

    `look(node)` gives what follows a node (ROOT first), None at the end of the text. `redraw(node, weights)` samples
    the token after the last accepted node: from the residual after a rejection, from the target's whole distribution
    (the bonus) if no child was drafted. With `entropy` the distribution is changed.

    Non-anticipation: whether a node is in the tree may depend on distributions, on accepted text and on nodes above it,
    never on its own token or on what follows it. So a length may depend on the entropy of a distribution before its
    token is sampled; dropping a sampled token because its probability is low biases the output.
    """
    path: list[int] = []
    here = ROOT
    while (fork := look(here)) is not None:
        taken, left = verify_siblings(fork.target, fork.draft, fork.places, fork.flips)
        if taken < 0:
            return AcceptedPath(path, redraw(here, left))
        if entropy is not None and fork.draft is not None and entropy.resamples(fork.target, fork.draft):
            return AcceptedPath(path, redraw(here, without_accepted(fork.target, fork.places[taken])))
        here = fork.nodes[taken]
        path.append(here)
    return AcceptedPath(path, -1)


def _point_mass(size: int, place: int) -> Doubles:
    law = np.zeros(size)
    law[place] = 1.0
    return law


def _total(weights: Doubles) -> Doubles:
    """Sums of the last axis, in order: the same bits everywhere."""
    return np.cumsum(weights, axis=-1)[..., -1]


_WHOLE = np.ones(1)  # the distribution of a forced token


@dataclass(frozen=True, slots=True)
class RejectionRule:
    """Implements `AcceptanceRule`. With `entropy` it changes the distribution: never for forecast distributions."""

    entropy: EntropyAwareRule | None = None
    widths: tuple[int, ...] = ()  # of the sampled drafts, for the record

    @classmethod
    def from_trace(cls, trace: RuleTrace) -> "RejectionRule":
        """The rule that a record names. Raises: IntegrityError for one that this program does not have."""
        found = cls(widths=trace.widths)
        if trace.name == "entropy_aware":
            try:
                found = cls(_entropy_rule(trace), trace.widths)
            except InvalidInput as error:
                raise IntegrityError(f"the recorded acceptance rule is not possible: {error}") from error
        if found.trace != trace:
            raise IntegrityError(f"the recorded acceptance rule '{trace.name}' is not known to this program")
        return found

    @property
    def trace(self) -> RuleTrace:
        name = "rejection" if self.entropy is None else "entropy_aware"
        trace_kept = RuleTrace(name, DRAFT_STREAMS, ACCEPT_STREAMS, RESAMPLE_STREAMS, self.widths)
        if self.entropy is None:
            return trace_kept
        threshold_nats, top_n, overlap = self.entropy.threshold_nats, self.entropy.top_n, self.entropy.overlap
        return replace(trace_kept, threshold_nats=threshold_nats, top_n=top_n, overlap=overlap)

    def __call__(
        self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree], logits: Sequence[Floats]
    ) -> list[DraftVerification | None]:
        """One outcome a sequence, None where a logit that decides is not a finite number.

        Shapes: logits [1 + n, V] for each sequence: after its settled text, then after each of the tree's n nodes.
        """
        return [
            _TreeWalk(sequence, tree, after).outcome(self.entropy)
            for sequence, tree, after in zip(sequences, trees, logits, strict=True)
        ]


def _entropy_rule(trace: RuleTrace) -> EntropyAwareRule:
    threshold_nats, top_n, overlap = trace.threshold_nats, trace.top_n, trace.overlap
    if (
        isinstance(threshold_nats, UnsetType)
        or isinstance(top_n, UnsetType)
        or isinstance(overlap, UnsetType)
    ):
        raise InvalidInput("its thresholds are missing")
    return EntropyAwareRule(threshold_nats, top_n, overlap)


class _TreeWalk:
    """One sequence's tree, as the rule reads it."""

    def __init__(self, sequence: SequenceState, tree: DraftTree, logits: Floats) -> None:
        self._sequence, self._tree, self._logits = sequence, tree, logits
        self._children = tree.children()
        self._depths: list[int] = [*(node_depths(tree.parents) + 1).tolist(), 0]  # the last is ROOT's
        self._is_finite = True

    def outcome(self, entropy: EntropyAwareRule | None) -> DraftVerification | None:
        path, place = accept_tree(self._look, self._redraw, entropy)
        if not self._is_finite:
            return None
        target_tokens = [-1] * (len(self._tree) + 1)
        for before, node in zip((ROOT, *path), path, strict=False):
            target_tokens[before] = self._tree.tokens[node]
        here = path[-1] if path else ROOT
        token = self._tokens(here)[place] if place >= 0 else -1
        target_tokens[here] = token
        return DraftVerification(path, token, target_tokens, bool(np.isfinite(self._logits).all()))

    def _look(self, node: int) -> SiblingSet | None:
        sequence, grammar = self._sequence, self._sequence.tokenized.grammar
        state = self._state(node)
        if state == grammar.done:
            return None
        children, step = self._children[node], grammar.steps[state]
        if step.forced >= 0:
            held = [children[step.forced]] if step.forced in children else []
            return SiblingSet(held, [0] * len(held), [0.5] * len(held), _WHOLE, None)
        (target,) = token_probabilities(
            self._logits[node + 1][None], step.allowed, sequence.tokenized.sampling
        )
        if np.isnan(target[0]):
            self._is_finite = False
            return None
        ids = step.allowed.ids
        places: list[int] = np.searchsorted(ids, np.array([*children], np.int64)).tolist()
        flips = acceptance_uniforms(self._key(ACCEPT_STREAMS, node), step.allowed, places) if places else ()
        return SiblingSet([*children.values()], places, flips, target, self._tree.draft_probs.get(node))

    def _redraw(self, node: int, weights: Doubles) -> int:
        step = self._sequence.tokenized.grammar.steps[self._state(node)]
        if step.forced >= 0:
            return 0
        return sample_without_replacement(weights, step.allowed, self._key(RESAMPLE_STREAMS, node))[0]

    def _tokens(self, node: int) -> list[int]:
        step = self._sequence.tokenized.grammar.steps[self._state(node)]
        return [step.forced] if step.forced >= 0 else step.allowed.ids.tolist()

    def _state(self, node: int) -> int:
        return self._tree.states[node] if node >= 0 else self._sequence.state

    def _key(self, streams: int, node: int) -> Keys:
        place = len(self._sequence.tokens) + self._depths[node]
        return np.array(
            [noise_key(self._sequence.tokenized.request.seed, streams + COMPLETION_STREAM, place)], np.uint64
        )
