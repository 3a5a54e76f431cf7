"""What people ask of a run's orders: one file each in its folder, moved there whole; the run takes each once.

A comparison with the other side that was made while the run goes on comes the same way.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import msgspec

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.files import make_private, write_atomically
from htfi.domain.orders import (
    MassCancelRequest,
    Reconciled,
    TradingDisabled,
    TradingEnabled,
    decode_order_event,
    encode_order_event,
)

FOLDER = "order-requests"
MAX_REQUEST_BYTES = 64 << 10
_SETTLED_NS = 1_000_000_000  # a folder that changed later may change again at the same time of its clock

OrderRequest = MassCancelRequest | TradingDisabled | TradingEnabled | Reconciled


def write_order_request(run: Path, request: OrderRequest, name: str = "") -> Path:
    """Leave a request in a run's folder, in a file of this name or of one that no other has.

    Raises: DependencyUnavailable.
    """
    path = run / FOLDER / f"{name or f'{request.at_ns}-{token_hex(4)}'}.json"
    try:
        make_private(path.parent)
        write_atomically(path, encode_order_event(request))
    except OSError as error:
        raise DependencyUnavailable(f"{path}: {error.strerror or error}") from error
    return path


class OrderRequests:
    """The requests of a run's folder, as they come."""

    def __init__(self, run: Path) -> None:
        self._folder = run / FOLDER
        self._mark = 0
        self._taken: list[Path] = []
        self._warnings: list[str] = []

    def take(self) -> Sequence[OrderRequest]:
        """Those that came since, oldest first. They are kept until `done`, so that a crash loses none."""
        self.done()
        try:
            mark = self._folder.stat().st_mtime_ns
        except OSError:
            return ()  # nobody has asked for anything
        if mark == self._mark:
            return ()
        found: list[OrderRequest] = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                event = decode_order_event(path.read_bytes()[:MAX_REQUEST_BYTES])
            except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
                self._warnings.append(f"{path}: is no request ({error}): it was left aside")
                with suppress(OSError):
                    path.rename(path.with_suffix(".unusable"))
                continue
            self._taken.append(path)
            if isinstance(event, OrderRequest):
                found.append(event)
            else:
                self._warnings.append(
                    f"{path}: a {type(event).__name__} is nothing to ask for: it was removed"
                )
        if time.time_ns() - mark > _SETTLED_NS:
            self._mark = mark
        return found

    def new_warnings(self) -> Sequence[str]:
        """A line on each file that cannot be used, once."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def done(self) -> None:
        """What was taken is recorded: its files go."""
        for path in self._taken:
            path.unlink(missing_ok=True)
        self._taken.clear()
