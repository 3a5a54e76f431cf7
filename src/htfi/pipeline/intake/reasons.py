"""Why a row is refused: the codes that quarantine, counts and docs/feeds.md share. Intake raises them."""

from enum import StrEnum

RAW_CHARS = 300  # what a rejection keeps of a row, and of the words on it


class Reason(StrEnum):
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


class Refusal(Exception):
    """This row cannot become an event: intake turns it into a rejection, it never ends a run.

    `raw` is what the rejection shows, where that is not the row itself.
    """

    def __init__(self, reason: Reason, detail: str, raw: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.raw = raw
