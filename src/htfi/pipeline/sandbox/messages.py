"""What goes to a confined process and comes back: typed, as msgpack. What comes back is checked as any foreign data."""

from typing import Any

import msgspec

from htfi.domain.events import FeedItem


class OpenCandidate(msgspec.Struct, frozen=True, tag="open", kw_only=True):
    """Open these settings and lock: `expert` is the text of a Python file, none where it is empty."""

    tables: dict[str, dict[str, Any]]
    expert: str = ""
    reads_news: bool = False
    memory_bytes: int = 0
    processor_s: float = 0.0


class BeginCandidate(msgspec.Struct, frozen=True, tag="begin"):
    """Whoever watches is ready: run the candidate's own code for the first time."""


class TakeEvents(msgspec.Struct, frozen=True, tag="events"):
    """The events of one instant, after which these series are asked for."""

    events: list[FeedItem]
    series: list[str]


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


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    """It cannot go on: in words. `at_opening` where nothing ran yet."""

    words: str
    at_opening: bool = False


Request = OpenCandidate | BeginCandidate | TakeEvents
Reply = Ready | Answers | Failure

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
