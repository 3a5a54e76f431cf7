"""Requests whose answers are awaited late, and answers that came late and are to be told. The linked author owns one.

Both are bounded: where too many are awaited the oldest is given up, where nobody asks the oldest answer is forgotten.
"""

from collections import OrderedDict
from collections.abc import Iterator

from htfi.decoding.link.pursuit import Pursuit
from htfi.domain.writing import Refusal, Writing


class Late:
    """By the id of the request."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._awaited: OrderedDict[str, Pursuit] = OrderedDict()
        self._told: OrderedDict[str, Writing | Refusal] = OrderedDict()

    def __iter__(self) -> Iterator[Pursuit]:
        """All that are awaited; some may be answered meanwhile."""
        return iter(list(self._awaited.values()))

    def knows(self, request_id: str) -> bool:
        return request_id in self._awaited or request_id in self._told

    def take_back(self, request_id: str, name: bytes) -> Pursuit | None:
        """A request that is awaited, if it is the same question: now somebody waits for it."""
        known = self._awaited.get(request_id)
        if known is None or known.sent.name != name:
            return None
        del self._awaited[request_id]
        known.is_late = False
        return known

    def put_off(self, pursuit: Pursuit) -> list[Pursuit]:
        """Await an answer late; those that are not awaited any more for it, to be abandoned."""
        pursuit.is_late = True
        request_id = pursuit.asked.request.id
        given_up: list[Pursuit] = []
        if (other := self._awaited.pop(request_id, None)) is not None:  # another question of the same id
            given_up.append(other)
        self._awaited[request_id] = pursuit
        if len(self._awaited) > self.most:
            oldest_id, oldest = self._awaited.popitem(last=False)
            given_up.append(oldest)
            self._tell(oldest_id, Refusal("given up: too many answers are awaited late"))
        return given_up

    def answered(self, pursuit: Pursuit, answer: Writing | Refusal) -> None:
        del self._awaited[pursuit.asked.request.id]
        self._tell(pursuit.asked.request.id, answer)

    def refused(self, request_id: str, refusal: Refusal) -> None:
        """Of a request that was never awaited."""
        self._tell(request_id, refusal)

    def tell(self) -> list[tuple[str, Writing | Refusal]]:
        """What came since the last call, each once."""
        told = list(self._told.items())
        self._told.clear()
        return told

    def clear(self) -> None:
        self._awaited.clear()
        self._told.clear()

    def _tell(self, request_id: str, answer: Writing | Refusal) -> None:
        self._told[request_id] = answer
        if len(self._told) > max(2 * self.most, 1):
            self._told.popitem(last=False)
