"""A run's file on what was noticed about its input beside single rows: faults of prices and of the calendar. The report
reads it."""

from pathlib import Path

import msgspec

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import write_atomically
from htfi.wiring.outputs import NOTICES

MAX_LINES = 1_000


class InputNotices(msgspec.Struct, frozen=True, kw_only=True):
    """Lines as the run said them: splits and renames since it began, series without a forecast, and the calendar's
    refused rows and zone."""

    prices: list[str] = []
    series: list[str] = []
    calendar: list[str] = []


def write_notices(folder: Path, notices: InputNotices, *, resumed: bool) -> None:
    """Write the file; a run that has none writes none, and removes an older one. A run that was `resumed` keeps what
    its earlier starts found in prices.

    Raises: DependencyUnavailable.
    """
    path = folder / NOTICES
    earlier = read_notices(folder).prices if resumed else []
    prices = list(dict.fromkeys([*earlier, *notices.prices]))[:MAX_LINES]
    notices = msgspec.structs.replace(notices, prices=prices)
    try:
        if notices == InputNotices():
            path.unlink(missing_ok=True)
            return
        data = msgspec.json.format(msgspec.json.encode(notices), indent=1)
        write_atomically(path, data + b"\n", private=True)
    except OSError as error:
        raise DependencyUnavailable(
            f"{path}: cannot be written: {error.strerror}; free some disk space and run again"
        ) from error


def read_notices(folder: Path) -> InputNotices:
    """What the run wrote; nothing where there is no such file, or it cannot be read."""
    try:
        return msgspec.json.decode((folder / NOTICES).read_bytes(), type=InputNotices)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return InputNotices()
