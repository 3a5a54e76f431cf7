"""The tenants' turns at the engine: what one has asked is written while it is its turn, and is held otherwise.

All questions of a tenant that are open together share one turn, so that many do not give it more than one would.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from htfi.library.serving.answer_turns import AnswerTurns


@dataclass(slots=True)
class _Share:
    """The open questions of one tenant; the work that its turn pauses and resumes."""

    tenant: str
    send_turn: Callable[[str, bool], None]
    has_begun: asyncio.Event = field(default_factory=asyncio.Event)
    num_open: int = 0
    is_paused: bool = False

    def pause(self) -> None:
        self.is_paused = True
        self.send_turn(self.tenant, True)

    def resume(self) -> None:
        self.is_paused = False
        self.send_turn(self.tenant, False)


class EngineTurns:
    """`send_turn(tenant, is_paused)` holds what a tenant has at the engine, or lets it go on. For one event loop."""

    def __init__(self, turns: AnswerTurns, send_turn: Callable[[str, bool], None]) -> None:
        self._turns, self._send_turn = turns, send_turn
        self._shares: dict[str, tuple[_Share, asyncio.Task[None]]] = {}

    @property
    def paused(self) -> list[str]:
        """Tenants whose questions are held."""
        return [tenant for tenant, (share, _) in self._shares.items() if share.is_paused]

    @asynccontextmanager
    async def question(self, tenant: str) -> AsyncGenerator[None]:
        """One open question; entered when the tenant has had its first turn since it has any."""
        while (found := self._shares.get(tenant)) is not None and not found[0].num_open:
            await asyncio.wait([found[1]])  # its turn is just ending
        if found is None:
            share = _Share(tenant, self._send_turn)
            task = asyncio.create_task(self._hold(share))
            self._shares[tenant] = found = share, task
            task.add_done_callback(lambda _: self._shares.pop(tenant))
        share, task = found
        share.num_open += 1
        try:
            await share.has_begun.wait()
            yield
        finally:
            share.num_open -= 1
            if not share.num_open:
                task.cancel()

    async def _hold(self, share: _Share) -> None:
        async with self._turns.turn(share.tenant, share):
            share.has_begun.set()
            await asyncio.Event().wait()  # until it is cancelled
