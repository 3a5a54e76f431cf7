"""What goes to a confined process and comes back: typed, as msgpack. What comes back is checked as any foreign data."""

from typing import Any

import msgspec

from htfi.domain.events import FeedItem
from htfi.governance.sandbox.trials import SandboxTrial


class OpenCandidate(msgspec.Struct, frozen=True, tag="open", kw_only=True):
    """Open these settings and lock: `expert` is the text of a Python file, none where it is empty.

    `over_link`: open the pair of models alone, for readings over a link.
    """

    tables: dict[str, dict[str, Any]]
    expert: str = ""
    reads_news: bool = False
    over_link: bool = False
    memory_bytes: int = 0
    processor_s: float = 0.0


class BeginCandidate(msgspec.Struct, frozen=True, tag="begin"):
    """Whoever watches is ready: run the candidate's own code for the first time."""


class TakeEvents(msgspec.Struct, frozen=True, tag="events"):
    """The events of one instant, after which these series are asked for."""

    events: list[FeedItem]
    series: list[str]


class RunLink(msgspec.Struct, frozen=True, tag="link"):
    """Read over a simulated link, as this trial describes it."""

    trial: SandboxTrial


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """It is open and locked: by what."""

    locks: list[str]


class SeriesAnswer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The newest forecast of one series: quantiles [H][Q] as log returns, those of the candidate expert alone beside.

    Empty where there is none yet. `outcome` is policy's; `direction` is the sign of the view that was read for it.
    """

    series: str
    quantiles: list[list[float]]
    own: list[list[float]]
    outcome: str
    direction: float


class Answers(msgspec.Struct, frozen=True, tag="answers"):
    """One answer for each series that was asked for, in order."""

    answers: list[SeriesAnswer]


class LinkReading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One reading over a link. `took_ms` until there was an answer, the draft's own included, in virtual time.

    `in_time` is it where that was the target's; `is_answered` where the target's came at all. `same_tokens`: it has
    the tokens of plain decoding.
    """

    took_ms: float
    in_time: bool = False
    is_answered: bool = False
    same_tokens: bool = False


class LinkAnswers(msgspec.Struct, frozen=True, tag="link answers"):
    """All readings of one trial over a link."""

    readings: list[LinkReading]


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    """It cannot go on: in words. `at_opening` where nothing ran yet."""

    words: str
    at_opening: bool = False


Request = OpenCandidate | BeginCandidate | TakeEvents | RunLink
Reply = Ready | Answers | LinkAnswers | Failure

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
