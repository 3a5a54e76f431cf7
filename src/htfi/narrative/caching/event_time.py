"""The time of events as the context cache knows it: that of the latest that was asked about. Its readers move it on."""


class EventTime:
    """Never goes back."""

    def __init__(self) -> None:
        self._now_ns = 0

    def __call__(self) -> int:
        return self._now_ns

    def reach(self, now_ns: int) -> None:
        if now_ns > self._now_ns:
            self._now_ns = now_ns
