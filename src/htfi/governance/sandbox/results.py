"""What a trial of a candidate came to: how it ended, its figures, and what held it while it ran."""

from enum import StrEnum

import msgspec


class TrialEnding(StrEnum):
    """How a trial ended. All but FINISHED reject the candidate."""

    FINISHED = "finished"
    REFUSED = "refused"  # it could not be opened
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    FORBIDDEN_CALL = "forbidden call"  # of the system: a process, a socket, a file to write
    READ_SECRETS = "read secrets"  # it opened files of the home folder
    PRINTED_SECRETS = "printed secrets"
    MALFORMED = "malformed answer"


class TrialStopped(msgspec.Struct, frozen=True):
    """Why a confined process answers no more."""

    ending: TrialEnding
    detail: str


class Enforcement(msgspec.Struct, frozen=True):
    """What this machine holds a candidate to, in words, and what it cannot."""

    enforced: tuple[str, ...] = ()
    not_enforced: tuple[str, ...] = ()


class Bounds(msgspec.Struct, frozen=True):
    """Of one confined process. `answer_s` is of one answer, `wall_s` of the whole trial."""

    memory_bytes: int = 2 << 30
    max_threads: int = 64  # before it is locked, while it opens models
    open_s: float = 60.0
    answer_s: float = 10.0
    wall_s: float = 300.0
    max_output_bytes: int = 1 << 16  # of what it prints, which is kept and searched


class LinkOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Readings over a link. `num_in_time` of them the target answered by the deadline; for the others the draft did.

    `num_other_tokens` of the target's answers, late ones included, differ from plain decoding. `num_stalled` readings
    got no answer of the target even after the link had no more faults. `num_late` got any answer only after the
    deadline. `p95_ms` until an answer, in virtual time.
    """

    num_readings: int
    num_in_time: int
    num_other_tokens: int
    num_stalled: int
    num_late: int
    p95_ms: float


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """One trial of candidate and champion on the same events, the champion's figures in brackets' place: `champion_…`.

    Losses are mean CRPS over horizons, each divided by the champion's mean: 1.01 is 1% worse than the champion.
    `p_worse` is the chance of figures as good as these were the candidate worse by the permitted margin; `p_better`
    that of figures as good were both equal. Times in ms. None where there is nothing to compare.
    """

    trial: str
    ending: TrialEnding
    detail: str = ""
    num_events: int = 0
    num_forecasts: int = 0
    loss: float | None = None
    loss_error: float | None = None  # standard error of the difference to the champion
    p_worse: float | None = None
    p_better: float | None = None
    own_loss: float | None = None  # of the candidate expert alone
    num_invalid: int = 0  # forecasts of its own that are not finite or cross, or that are missing
    repeats: bool = True  # equal events gave equal forecasts
    num_withheld: int = 0
    champion_withheld: int = 0
    num_released_more: int = 0  # that the champion withheld or marked with caution
    moved: float | None = None  # farthest that attacks moved a median, in 90% bands
    champion_moved: float | None = None
    right_views: float | None = None  # share of views with the right sign, where it is known
    champion_right_views: float | None = None
    p_views: float | None = None
    answer_p95_ms: float | None = None
    champion_p95_ms: float | None = None
    events_per_s: float | None = None
    needed_events_per_s: float = 0.0
    link: LinkOutcome | None = None  # of a trial over a link, which has no forecasts
    champion_link: LinkOutcome | None = None
