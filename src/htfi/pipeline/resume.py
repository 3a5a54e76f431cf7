"""Stop anywhere, go on as if nothing had happened: saves a run's state between two items and finds it again.

A saved state is never a source of truth: what was decided after it is decided again and must equal the ledger.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.pipeline.loop import Loop
from htfi.pipeline.ports import Position, Quarantine, SnapshotStore
from htfi.pipeline.snapshot import decode_state, encode_state


@dataclass(frozen=True, slots=True)
class Saved:
    """One saved state: the loop's, and where its feed and its quarantine stood."""

    loop: dict[str, Any]
    feed: Position
    quarantine: Position
    held: Position


class Resume:
    """Keeps the newest state of one run; `identity` (plain values) tells runs apart."""

    def __init__(self, store: SnapshotStore, identity: dict[str, Any], folder: str) -> None:
        self._store = store
        self._identity: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(identity))
        self._folder = folder

    def load(self) -> Saved | None:
        """The newest saved state, if any. Raises: InvalidInput where it belongs to another run."""
        data = self._store.load()
        if data is None:
            return None
        state = decode_state(data)
        for key, value in self._identity.items():
            if state["identity"].get(key) != value:
                raise InvalidInput(
                    f"{self._folder} holds a run with other {key}: go on with the same, or choose another --out"
                )
        return Saved(state["loop"], state["feed"], state["quarantine"], state["held"])

    def save(self, loop: Loop, quarantine: Quarantine) -> None:
        """Commit what is open and save the state after the item in hand."""
        loop.recorder.release(now=True)
        state = {
            "identity": self._identity,
            "loop": loop.state(),
            "feed": loop.feed.position(),
            "quarantine": quarantine.position(),
            "held": loop.held.position(),
        }
        self._store.save(encode_state(state))
