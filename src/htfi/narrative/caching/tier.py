"""What one tier of the context cache is: memory, a file of this machine, a server of several. `Tiers` joins them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """A value on its way into a tier, to be kept for at most `ttl_ns`."""

    key: bytes
    value: bytes
    ttl_ns: int
    about: tuple[str, ...]


class Tier(Protocol):
    """Bounded in bytes and in time to answer. Nothing is raised: a tier that fails knows nothing, and says so once."""

    @property
    def name(self) -> str: ...

    def get_many(self, keys: Sequence[bytes], about: Sequence[Sequence[str]]) -> list[bytes | None]:
        """The value of each key; None where there is none, or where one of what it is about was forgotten."""
        ...

    def put_many(self, entries: Sequence[Entry]) -> None:
        """Keep these, but for what is about something that was forgotten."""
        ...

    def forget(self, about: Sequence[str]) -> bool:
        """Drop all that is about one of these, and refuse what comes later. False where it must be asked again."""
        ...

    def forgotten(self) -> Sequence[str] | None:
        """What others have had forgotten since the last call; None: more than is known, so trust nothing kept before.

        Asked before every look-up, so it costs next to nothing.
        """
        ...

    def clear(self) -> None:
        """Trust nothing that was kept here without the knowledge of what others had forgotten."""
        ...

    def drain(self, timeout_s: float) -> bool:
        """Wait until what was put is written; false where that took longer."""
        ...

    def close(self) -> None: ...
