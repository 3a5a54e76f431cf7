"""Why a row is refused: the codes that quarantine, counts and docs/feeds.md share. Intake raises them."""

from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType

MAX_RAW_CHARS = 4096  # what a rejection keeps of a row
MAX_DETAIL_CHARS = 300  # and of the words on it


class QuarantineReason(StrEnum):
    """Stable codes; the words beside each are in docs/feeds.md."""

    MALFORMED = "malformed"
    BAD_ENCODING = "bad_encoding"
    TOO_LONG = "too_long"
    UNKNOWN_KIND = "unknown_kind"
    MISSING_FIELD = "missing_field"
    BAD_SYMBOL = "bad_symbol"
    BAD_NUMBER = "bad_number"
    BAD_PRICE = "bad_price"
    BAD_SIZE = "bad_size"
    BAD_SIDE = "bad_side"
    BAD_BAR = "bad_bar"
    REPAIRED = "repaired"
    BAD_TAG = "bad_tag"
    BAD_INTERVAL = "bad_interval"
    CROSSED_QUOTE = "crossed_quote"
    BAD_TIME = "bad_time"
    NO_ZONE = "no_zone"
    ABSURD_TIME = "absurd_time"
    DUPLICATE = "duplicate"
    HIDDEN_TEXT = "hidden_text"
    BAD_DOCUMENT = "bad_document"
    UNREACHABLE = "unreachable"
    LATE = "late"
    AHEAD = "ahead"


_REMEDIES: Mapping[QuarantineReason, str] = MappingProxyType({
    QuarantineReason.MALFORMED: "check `format` and the separator; state `multiline = true` where fields span lines",
    QuarantineReason.BAD_ENCODING: "save the file as UTF-8",
    QuarantineReason.TOO_LONG: "cut its rows",
    QuarantineReason.UNKNOWN_KIND: "state `kind` and map the columns under [source.columns]",
    QuarantineReason.MISSING_FIELD: "map the missing column under [source.columns]",
    QuarantineReason.BAD_SYMBOL: "map `symbol` under [source.columns], or state `symbol`",
    QuarantineReason.BAD_NUMBER: "map the right columns under [source.columns], and write numbers as 1234.5",
    QuarantineReason.BAD_PRICE: "map the right columns under [source.columns]",
    QuarantineReason.BAD_SIZE: "map the right columns under [source.columns]",
    QuarantineReason.BAD_SIDE: "map `side` under [source.columns]",
    QuarantineReason.BAD_BAR: "map open, high, low and close under [source.columns]",
    QuarantineReason.BAD_TAG: "map `residency` under [source.columns], or remove it",
    QuarantineReason.BAD_INTERVAL: 'state `interval`, such as "1h", or map its column under [source.columns]',
    QuarantineReason.CROSSED_QUOTE: "map bid and ask under [source.columns]",
    QuarantineReason.BAD_TIME: "map `ts` under [source.columns], or state `dates` or `bar_stamp`",
    QuarantineReason.NO_ZONE: 'state `zone`, such as "America/New_York", or give it as --zone',
    QuarantineReason.ABSURD_TIME: "state `unit`: s, ms, us or ns",
    QuarantineReason.DUPLICATE: 'state `duplicates = "keep"`',
    QuarantineReason.LATE: 'state `order = "sort"`, or a longer `tolerance`',
    QuarantineReason.AHEAD: 'state `order = "sort"`',
})  # fmt: skip


def describe_refused_source(source: str, counts: Mapping[str, int], example: str) -> str:
    """One line on a source whose every row was refused: how many, why most of them, and what to change."""
    reason, num = max(counts.items(), key=lambda item: item[1])
    why = f"{reason}: {example}" if example else reason
    if num < sum(counts.values()):
        why = f"{num:,} of them {why}"
    remedy = _REMEDIES.get(QuarantineReason(reason), "")
    return f"every row of {source} ({sum(counts.values()):,}) was quarantined, {why}" + (
        f"; in the mapping {remedy}" if remedy else ""
    )


class TruncatedRow(bytes):
    """The beginning of a row that was too long to hold, with the digest of all of it."""

    sha256: str = ""

    @classmethod
    def of(cls, begin: bytes, digest: str) -> "TruncatedRow":
        cut = cls(begin)
        cut.sha256 = digest
        return cut


def retained_text(raw: str | bytes, num_bytes: int = 0) -> tuple[str, int, str]:
    """What a rejection keeps of a row: its text, and the length and digest of the row where that is not all of it.

    `num_bytes` is the length of a row of which `raw` is the beginning only.
    """
    content = raw.encode("utf-8", "backslashreplace") if isinstance(raw, str) else raw
    text = content.decode("utf-8", "backslashreplace")
    if num_bytes > len(content):
        return text[:MAX_RAW_CHARS], num_bytes, content.sha256 if isinstance(content, TruncatedRow) else ""
    if len(text) <= MAX_RAW_CHARS and text.encode() == content:
        return text, 0, ""
    return text[:MAX_RAW_CHARS], len(content), sha256(content).hexdigest()


class RowRefused(Exception):
    """This row cannot become an event: intake turns it into a rejection, it never ends a run.

    `raw` is what the rejection shows, where that is not the row itself.
    """

    def __init__(self, reason: QuarantineReason, detail: str, raw: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.raw = raw
