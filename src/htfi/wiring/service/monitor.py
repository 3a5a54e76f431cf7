"""Follows a ledger over HTTP for whoever does not trust its keeper: what was checked once is kept in a file."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from htfi.adapters.tile_log.fetching import TileServer
from htfi.domain.decision import PolicyOutcome
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.files import write_atomically
from htfi.governance.ledger.monitoring import Advance, MonitoredLog, advance
from htfi.governance.ledger.note import VerifierKey, parse_verifier_key
from htfi.pipeline.record.entry import try_decode_entry
from htfi.wiring.ledger import signature_verifier


class Seen(msgspec.Struct):
    """What the entries of one look are."""

    num_decisions: int = 0
    num_withheld: int = 0
    num_others: int = 0  # entries that are no decisions of this version

    def take(self, first: int, entries: Sequence[bytes]) -> None:
        """Count entries."""
        del first
        for entry in entries:
            decision = try_decode_entry(entry)
            if decision is None:
                self.num_others += 1
                continue
            self.num_decisions += 1
            self.num_withheld += decision.verdict.outcome is PolicyOutcome.WITHHOLD


class LedgerMonitor:
    """One log, its state in `state`; a look at a time."""

    def __init__(self, server: TileServer, state: Path, key_text: str | None) -> None:
        """Raises: InvalidInput, IntegrityError, DependencyUnavailable."""
        self._server, self._state = server, state
        self.known = _read_state(state)
        named = key_text or self.known.key
        if not named:
            raise InvalidInput(
                "--key: name the log's verifier key at the first look, as `htfi ledger show RUN` prints it"
            )
        self.key: VerifierKey = parse_verifier_key(named)
        if self.known.key and self.known.key != str(self.key):
            raise IntegrityError(f"{state} is of a log signed by {self.known.key}, not by {self.key}")

    def look(self, report: Callable[[Advance, Seen], None]) -> None:
        """Check what is new and remember it; `report` gets it, unless there is nothing new.

        Raises: DependencyUnavailable where the log cannot be reached; IntegrityError where it does not hold, once the
        signed checkpoints that show it lie beside the state.
        """
        content = self._server.fetch("checkpoint")
        if content is None:
            raise DependencyUnavailable(f"{self._server.url}/checkpoint: there is none yet")
        note = content.decode("utf-8", errors="replace")
        seen = Seen()
        try:
            found = advance(self.known, self.key, note, self._server.fetch, signature_verifier(), seen.take)
        except IntegrityError as error:
            write_atomically(_beside(self._state, "seen"), self.known.checkpoint.encode())
            write_atomically(_beside(self._state, "shown"), content)
            raise IntegrityError(
                f"{error}: {_beside(self._state, 'seen')}, {_beside(self._state, 'shown')}"
            ) from error
        if found.num_new or not self.known.checkpoint:
            write_atomically(self._state, msgspec.json.encode(found.known))
            self.known = found.known
            report(found, seen)


@contextmanager
def open_monitor(url: str, api_key: str, state: Path, key_text: str | None) -> Generator[LedgerMonitor]:
    """A monitor of the log at `url`. Raises: as TileServer and LedgerMonitor."""
    with TileServer(url, api_key) as server:
        yield LedgerMonitor(server, state, key_text)


def _beside(state: Path, name: str) -> Path:
    return state.with_name(f"{state.name}.{name}.checkpoint")


def _read_state(state: Path) -> MonitoredLog:
    try:
        return msgspec.json.decode(state.read_bytes(), type=MonitoredLog)
    except FileNotFoundError:
        return MonitoredLog("")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IntegrityError(
            f"{state} is not the state of a monitor: {error}; put back a copy of it"
        ) from None
    except OSError as error:
        raise DependencyUnavailable(f"{state}: cannot be read: {error.strerror}") from error
