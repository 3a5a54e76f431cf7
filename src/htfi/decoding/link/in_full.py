"""The clouds' target in full precision, as an author of its own: for readings in depth, which nobody waits for.

It shares the linked author's streams. Nothing drafts for it, and nothing is written here in its place.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from htfi.decoding.link.linked_author import LinkedAuthor
from htfi.domain.writing import Dialect, Refusal, Request, Spoken, Writing


class InFullAuthor:
    """Implements `LateAuthor`. `version` is the target's in full precision."""

    spoken: Spoken | None = None

    def __init__(self, linked: LinkedAuthor, version: str) -> None:
        self._linked = linked
        self.version = version

    @property
    def dialect(self) -> Dialect:
        return self._linked.dialect

    def write(self, requests: Sequence[Request]) -> list[Writing | Refusal]:
        """Refusals: what is asked of it is pursued."""
        return [Refusal("nobody waits for a cloud's target in full precision") for _ in requests]

    def late(self) -> list[tuple[str, Writing | Refusal]]:
        """Answers that came since the last call, by the id of their request; see `LateAuthor`."""
        return self._linked.late_in_full()

    def pursue(self, requests: Sequence[Request]) -> None:
        """Ask the clouds that have it."""
        self._linked.pursue([replace(request, in_full=True) for request in requests])
