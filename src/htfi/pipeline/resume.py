"""Stop anywhere, go on as if nothing had happened: saves a run's state between two items and finds it again.

A saved state is never a source of truth: what was decided after it is decided again and must equal the ledger. One that
is not as it was saved is rebuilt: the run begins again with its inputs, and all that it decides must equal the ledger.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.pipeline.loop import Loop
from htfi.pipeline.ports import Position, Quarantine, SnapshotStore
from htfi.pipeline.snapshot import decode_state, encode_state


def check_ledger(state: dict[str, Any], folder: str, size: int, root: Callable[[int], str]) -> int:
    """How many entries the ledger held when the state was saved.

    Raises: LedgerCut where it holds fewer, IntegrityError where it is another.
    """
    num_recorded: int = state["ledger"]["size"]
    if num_recorded > size:
        raise LedgerCut(
            f"{folder}: the ledger holds {size} entries, and held {num_recorded} when the state was saved: it was "
            "replaced or cut; restore it, or use a new folder"
        )
    if root(num_recorded) != state["ledger"]["root"]:
        raise IntegrityError("the saved state was saved beside another ledger")
    return num_recorded


class LedgerCut(IntegrityError):
    """Entries are gone from the ledger: to decide again would hide it."""


@dataclass(frozen=True, slots=True)
class Saved:
    """One saved state: the loop's, where its feed and its quarantine stood, and how many entries were let out."""

    num_released: int
    loop: dict[str, Any]
    feed: Position
    quarantine: Position
    held: Position


class Resume:
    """Keeps the newest state of one run; `identity` (plain values) tells runs apart.

    `root` gives the ledger's root (hex) over its first entries: a state belongs to the ledger that it was saved with.
    """

    def __init__(
        self, store: SnapshotStore, identity: dict[str, Any], folder: str, root: Callable[[int], str]
    ) -> None:
        self._store = store
        self._identity: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(identity))
        self._folder = folder
        self._root = root

    def load(self, ledger_size: int) -> Saved | None:
        """The newest saved state, if any.

        Raises: InvalidInput where it belongs to another run, IntegrityError where it is not what was saved, or the
        ledger has lost entries since.
        """
        data = self._store.load()
        if data is None:
            return None
        state = decode_state(data)
        num_recorded = check_ledger(state, self._folder, ledger_size, self._root)
        for key, value in self._identity.items():
            if state["identity"].get(key) != value:
                raise InvalidInput(
                    f"{self._folder} holds a run with other {key}: go on with the same, or choose another --out"
                )
        return Saved(num_recorded, state["loop"], state["feed"], state["quarantine"], state["held"])

    def save(self, loop: Loop, quarantine: Quarantine) -> None:
        """Commit what is open and save the state after the item in hand."""
        loop.recorder.release(now=True)
        num_recorded = loop.recorder.num_recorded
        state = {
            "identity": self._identity,
            "ledger": {"size": num_recorded, "root": self._root(num_recorded)},
            "loop": loop.state(),
            "feed": loop.feed.position(),
            "quarantine": quarantine.position(),
            "held": loop.held.position(),
        }
        self._store.save(encode_state(state))
