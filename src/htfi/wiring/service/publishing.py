"""Publishes the record of a run on a bus, from its ledger, in a process of its own: the run never waits for the bus."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from htfi.adapters.feeds.live import reconnect_delay_s
from htfi.domain.errors import IntegrityError
from htfi.pipeline.intake.messages import BusUnavailable
from htfi.pipeline.publishing import DecisionBus, PublishedLine
from htfi.wiring.ledger import DATABASE, is_running
from htfi.wiring.service.record import RecordedLine, ServedRecordReader

_GROUP = 256  # entries published at once
_TURN_S = 0.005  # between looks at whether the ledger has grown
_WAIT_S = 0.1  # between looks at whether there is a ledger
_SEPARATOR = "/"


class _Head(msgspec.Struct):
    leaf_hash: str
    deleted: str = ""
    withheld: bool = False


_decode_head = msgspec.json.Decoder(_Head).decode


def publish_record(
    folder: Path, bus: DecisionBus, *, stays: bool, stopping: threading.Event, notify: Callable[[str], None]
) -> int:
    """Publish every entry until the run has ended, with `stays` until `stopping`: how many entries the bus holds.

    A bus that is away is tried again without end, with a line in `notify` when it goes and when it is back.
    Raises: InvalidInput, IntegrityError, DependencyUnavailable of the ledger.
    """
    while not (folder / DATABASE).exists():
        if stopping.wait(_WAIT_S):
            return 0
    num_failures, is_reported, at = 0, False, 0
    with closing(ServedRecordReader(folder)) as record:
        while True:
            try:
                at = bus.open(_name_of(record))
                if is_reported:
                    notify(f"the bus is back; it holds {at:,} entries")
                    is_reported = False
                while not stopping.is_set():
                    goes_on = stays or is_running(folder)
                    num = _publish_next(record, bus, at)
                    if num:
                        at, num_failures = at + num, 0
                    elif not goes_on:
                        return at
                    else:
                        bus.wait(_TURN_S)
                return at
            except BusUnavailable as error:
                if not is_reported and num_failures:
                    notify(f"{error}; trying again")
                    is_reported = True
            finally:
                bus.close()
            if stopping.wait(reconnect_delay_s(num_failures)):
                return at
            num_failures += 1


def _publish_next(record: ServedRecordReader, bus: DecisionBus, at: int) -> int:
    """Publish a group of entries from an index on: how many there were."""
    size = record.size
    if at > size:
        raise IntegrityError(
            f"the bus holds {at:,} entries, the ledger {size:,}: the ledger may have been cut"
        )
    lines = record.lines(at, min(size, at + _GROUP)) if at < size else []
    if lines:
        bus.publish([published_line(line) for line in lines])
    return len(lines)


def published_line(line: RecordedLine) -> PublishedLine:
    """An entry's line with what subscribers pick by."""
    head = _decode_head(line.line)
    symbol, _, interval = line.series.rpartition(_SEPARATOR)
    outcome = "deleted" if head.deleted else "withheld" if head.withheld else "released"
    return PublishedLine(line.index, head.leaf_hash, symbol, interval, outcome, line.line)


def _name_of(record: ServedRecordReader) -> str:
    """The log's name and the id of its key: no two ledgers share it."""
    return "+".join(record.verifier_key.split("+")[:2])
