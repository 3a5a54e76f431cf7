"""Rounds of sampling paths: guess their continuation, let the target read the guesses in one pass, keep the right ones.

A path keeps the tokens up to the first guess that the target does not share and takes the target's own token there, so
its tokens are those of plain sampling, whatever was guessed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from htfi.decoding.noise import Keys, noise_keys
from htfi.decoding.ports import Floats, Ids
from htfi.decoding.sampling import AllowedTokens, SamplingParams, sample_tokens
from htfi_train.paths.plan import GuessSource, PathPlan, PathProgress, PathRoundReport, PathStep
from htfi_train.paths.rows import PathRows

Clock = Callable[[], float]  # seconds
OpenDraft = Callable[[int], PathRows | None]  # that many rows that hold the prefix, if there is room


@dataclass(slots=True)
class PathSamplingStats:
    """The cost of sampling. `accepted_per_pass`: the accepted tokens of each pass of the target."""

    accepted_per_pass: list[int] = field(default_factory=list[int])
    num_draft_passes: int = 0
    target_ms: float = 0.0
    draft_ms: float = 0.0
    total_ms: float = 0.0

    @property
    def num_target_passes(self) -> int:
        return len(self.accepted_per_pass)


class PriceTokenSampler:
    """Samples among the price tokens, by rank, with the noise of path and position [N, H]."""

    def __init__(
        self, prices: AllowedTokens, sampling: SamplingParams, seed: int, streams: Ids, horizon: int
    ) -> None:
        num = len(prices.ids)
        self.ids = prices.ids  # of each rank
        self._ranks = AllowedTokens(np.arange(num), prices.counters)
        first = int(prices.ids[0])
        is_run = int(prices.ids[-1]) - first == num - 1
        self._columns: slice | Ids = slice(first, first + num) if is_run else prices.ids
        self._sampling = sampling
        places = np.tile(np.arange(horizon), len(streams))
        self._noise: Keys = noise_keys(seed, streams.repeat(horizon), places).reshape(-1, horizon)

    def scores(self, logits: Floats) -> Floats:
        """Scores of the price tokens: [..., V] → [..., C]."""
        return logits[..., self._columns]

    def choose(self, scores: Floats, paths: Ids, places: Ids) -> Ids:
        """Ranks [M] from scores [M, C]; −1 if a score is not finite."""
        return sample_tokens(scores, self._ranks, self._sampling, self._noise[paths, places])


class PathDrawing:
    """Paths being sampled: ranks [N, H], of which the first `accepted` [N] are the target's and the rest guesses."""

    def __init__(
        self,
        target: PathRows,
        open_draft: OpenDraft | None,
        law: PriceTokenSampler,
        num_paths: int,
        horizon: int,
        clock: Clock,
    ) -> None:
        self.ranks: Ids = np.zeros((num_paths, horizon), np.int64)
        self._accepted: Ids = np.zeros(num_paths, np.int64)
        self._guessed: Ids = np.zeros(num_paths, np.int64)  # up to where the target itself chose the guess
        self._paths: Ids = np.arange(num_paths)  # unfinished ones, one per row
        self._latest: Floats = np.zeros(
            (num_paths, 0), np.float32
        )  # scores that further guesses are sampled from
        self._horizon = horizon
        self._num_prefix = int(target.lengths[0])
        self._target = target
        self._draft: PathRows | None = None
        self._open_draft = open_draft
        self._law = law
        self._clock = clock

    def draw(self, first: Floats, plan: PathPlan, rounds: PathSamplingStats) -> bool:
        """Complete all paths, from the target's logits after the prefix [V]; false if a logit is not finite."""
        self._latest = np.repeat(self._law.scores(first)[None], len(self.ranks), axis=0)
        begun = self._law.choose(self._latest, self._paths, np.zeros_like(self._paths))
        if begun.min() < 0:
            return False
        self.ranks[:, 0] = begun
        self._accepted[:] = self._guessed[:] = 1
        num_rounds = 0
        while self._drop_done():
            left = self._horizon - self._accepted[self._paths]
            progress = PathProgress(
                left,
                self._target.num_slots,
                has_draft=self._open_draft is not None,
                num_rounds=num_rounds,
                draft_is_open=self._draft is not None,
            )
            step = plan.next(progress)
            num_guesses = min(step.num_guesses, int(left.max()) - 1)
            step, draft_ms = self._guess(PathStep(num_guesses, step.source), rounds)
            begun_s = self._clock()
            verified = self._verify(num_guesses + 1)
            if verified is None:
                return False
            gained, tried, right = verified
            target_ms = 1e3 * (self._clock() - begun_s)
            num_rows = self._target.num_slots  # of the pass, which may have closed gaps
            rounds.accepted_per_pass.append(gained)
            rounds.target_ms += target_ms
            plan.learn(PathRoundReport(step, num_rows, tried, right, target_ms, draft_ms))
            num_rounds += 1
        return True

    def _drop_done(self) -> int:
        """Free the rows of finished paths; the number of remaining paths."""
        stays = self._accepted[self._paths] < self._horizon
        if not stays.all():
            self._target.drop_rows(stays)
            if self._draft is not None:
                self._draft.drop_rows(stays)
            self._paths = self._paths[stays]
        return len(self._paths)

    def _guess(self, step: PathStep, rounds: PathSamplingStats) -> tuple[PathStep, float]:
        """Fill in the guesses; their source, and the draft's time in ms."""
        num_guesses, source = step
        if not num_guesses:
            return step, 0.0
        draft = None
        if source is GuessSource.DRAFT:
            begun_s = self._clock()
            draft = self._opened()
            rounds.draft_ms += 1e3 * (self._clock() - begun_s)
        if draft is None:
            self._guess_alone(num_guesses)
            return PathStep(num_guesses), 0.0
        begun_s = self._clock()
        num_passes = draft.num_passes
        self._guess_drafted(draft, num_guesses)
        rounds.num_draft_passes += draft.num_passes - num_passes
        draft_ms = 1e3 * (self._clock() - begun_s)
        rounds.draft_ms += draft_ms
        return step, draft_ms

    def _opened(self) -> PathRows | None:
        if self._draft is None and self._open_draft is not None:
            self._draft = self._open_draft(len(self._paths))
            if self._draft is None:
                self._open_draft = None
        return self._draft

    def _verify(self, window: int) -> tuple[int, Ids, Ids] | None:
        """One pass over the last accepted token of each path and the guesses after it.

        Accepted tokens; guesses tried at each position and right there. None if a logit is not finite.
        """
        paths, accepted = self._paths, self._accepted[self._paths]
        law, horizon = self._law, self._horizon
        if window == 1:
            scores = law.scores(self._target.forward(law.ids[self.ranks[paths, accepted - 1]][:, None])[:, 0])
            chosen = law.choose(scores, paths, accepted)
            if chosen.min() < 0:
                return None
            self._target.keep_all()
            self.ranks[paths, accepted] = chosen
            self._accepted[paths] += 1
            self._guessed[paths] = accepted + 1
            self._latest[paths] = scores
            return len(paths), _NONE, _NONE
        places = accepted[:, None] + np.arange(window)  # [B, W]: those that are chosen now
        is_real = places < horizon
        at = np.minimum(places, horizon - 1)
        rows = np.arange(len(paths))
        scores = law.scores(self._target.forward(law.ids[self.ranks[paths[:, None], at - 1]]))  # [B, W, C]
        chosen = law.choose(
            scores.reshape(-1, scores.shape[2]), paths.repeat(window), at.reshape(-1)
        ).reshape(-1, window)
        same = (chosen[:, :-1] == self.ranks[paths[:, None], at[:, :-1]]) & is_real[:, 1:]
        right = np.logical_and.accumulate(same, axis=1)  # [B, W − 1]
        gained = right.sum(axis=1) + 1
        if chosen[rows, gained - 1].min() < 0:
            return None
        self._target.keep(gained)
        ends = np.minimum(accepted + window, horizon)
        of, column = np.nonzero(is_real)
        self.ranks[paths[of], places[of, column]] = np.maximum(chosen[of, column], 0)
        self._accepted[paths] = accepted + gained
        self._guessed[paths] = ends
        self._latest[paths] = scores[rows, ends - accepted - 1]
        tried = np.concatenate([is_real[:, 1:2], right[:, :-1] & is_real[:, 2:]], axis=1)
        return int(gained.sum()), tried.sum(axis=0), right.sum(axis=0)

    def _guess_alone(self, num_guesses: int) -> None:
        """The target's own choices after a mismatch; beyond them, its latest scores with each position's noise."""
        paths = self._paths
        places = self._accepted[paths][:, None] + np.arange(num_guesses)
        rows, column = np.nonzero((places >= self._guessed[paths][:, None]) & (places < self._horizon))
        if len(rows):
            paths, places = paths[rows], places[rows, column]
            self.ranks[paths, places] = np.maximum(self._law.choose(self._latest[paths], paths, places), 0)

    def _guess_drafted(self, draft: PathRows, num_guesses: int) -> None:
        """Token by token, all paths side by side, after the draft has read the accepted tokens."""
        paths, accepted = self._paths, self._accepted[self._paths]
        law, horizon = self._law, self._horizon
        held = np.minimum(draft.lengths - self._num_prefix, accepted - 1)
        draft.rewind(held + self._num_prefix)
        lag = accepted - held
        unread = held[:, None] + np.arange(int(lag.max()))
        read = self.ranks[paths[:, None], np.minimum(unread, horizon - 1)]
        after = draft.forward(law.ids[read])[np.arange(len(paths)), lag - 1]
        draft.keep(lag)
        for ahead in range(num_guesses):
            places = accepted + ahead
            is_real = places < horizon
            guess = law.choose(law.scores(after), paths, np.minimum(places, horizon - 1))
            if guess.min() < 0:
                self._give_up(draft)
                return
            self.ranks[paths[is_real], places[is_real]] = guess[is_real]
            if ahead + 1 < num_guesses:
                after = draft.forward(law.ids[guess][:, None])[:, 0]
                draft.keep(is_real.astype(np.int64))

    def _give_up(self, draft: PathRows) -> None:
        """Stop using a draft whose logits are not finite; its guesses so far do no harm."""
        draft.zero()
        draft.drop_rows(np.zeros(len(draft.rows), np.bool_))
        self._draft = self._open_draft = None


_NONE: Ids = np.zeros(0, np.int64)
