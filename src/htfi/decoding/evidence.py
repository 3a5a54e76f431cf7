"""What speculation did and what it cost, counted as it happens. The author keeps one; runs and services show it."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Evidence:
    """Counts since the author was made. Units: ms of one core.

    offered[d] are the rounds that drafted more than d chosen tokens, stood[d] those in which more than d of them
    stood; tokens that a form forces count as neither. `draft_ms` is what speculating took, and where the draft runs
    beside the target, what waiting for it took.
    """

    num_answers: int = 0
    num_tokens: int = 0
    num_passes: int = 0  # of the target, beyond the prompts', counted for each answer in it
    offered: list[int] = field(default_factory=list[int])
    stood: list[int] = field(default_factory=list[int])
    draft_ms: float = 0.0
    verify_ms: float = 0.0

    @property
    def acceptance(self) -> float:
        """Share of the drafted places that stood; 0 where nothing was drafted."""
        return sum(self.stood) / sum(self.offered) if self.offered else 0.0

    @property
    def tokens_per_pass(self) -> float:
        return self.num_tokens / self.num_passes if self.num_passes else 0.0

    def joules(self, watts: float) -> float:
        """An estimate, where no meter exists: time at so many watts a core."""
        return watts * (self.draft_ms + self.verify_ms) / 1e3

    def note_round(self, depth: int, num_stood: int) -> None:
        """One answer's part in a pass: chosen tokens drafted on its deepest branch, and how many stood."""
        self.num_passes += 1
        for counts, num in ((self.offered, depth), (self.stood, num_stood)):
            counts.extend([0] * (depth - len(counts)))
            for place in range(num):
                counts[place] += 1

    def note_time(self, draft_ms: float, verify_ms: float) -> None:
        self.draft_ms += draft_ms
        self.verify_ms += verify_ms

    def note_answer(self, num_tokens: int) -> None:
        self.num_answers += 1
        self.num_tokens += num_tokens
