"""A clock that moves only when told to. Tests of live code use it in place of the machine's."""

from htfi.domain.errors import InvalidInput


class VirtualClock:
    """Starts at `now_ns` and goes forward by `advance` alone."""

    def __init__(self, now_ns: int = 0) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        return self._now_ns

    def advance(self, by_ns: int) -> None:
        if by_ns < 0:
            raise InvalidInput(f"a clock cannot go back by {-by_ns} ns")
        self._now_ns += by_ns
