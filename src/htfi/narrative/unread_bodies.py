"""Which items may concern a series of the run; the bodies of others, in bounded memory, for when it has one."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence, Set

from htfi.narrative.facts.bodies import is_on_companies
from htfi.narrative.facts.record import NewsFacts

MAX_UNREAD_CHARS = 2_000_000  # of all bodies together: some five thousand leads


def concerns_series(
    symbols: Sequence[str],
    facts: NewsFacts,
    linked: Callable[[], Iterable[str]],
    series: Set[str],
    *,
    all_named: bool,
) -> bool:
    """Whether an item on `symbols` may concern one of a run's `series`; without any, unless it is news of companies and
    none that it names (`linked`) has a series.

    `facts` are those of its headline, `all_named` as in `is_on_companies`.
    """
    if symbols:
        return not series.isdisjoint(symbols)
    return not is_on_companies(facts, all_named=all_named) or not series.isdisjoint(linked())


class UnreadBodies:
    """Bodies by the id of their item; of too many characters the longest held go first."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[str, str] = OrderedDict()
        self._num_chars = 0

    def __len__(self) -> int:
        return len(self._bodies)

    def items(self) -> Iterable[tuple[str, str]]:
        """Ids and bodies, the longest held first."""
        return self._bodies.items()

    def hold(self, name: str, body: str) -> None:
        """Hold a body until it is dropped, or until there are too many."""
        self.drop(name)
        self._bodies[name] = body
        self._num_chars += len(body)
        while self._num_chars > MAX_UNREAD_CHARS:
            self.drop(next(iter(self._bodies)))

    def drop(self, name: str) -> None:
        """Hold an item's body no longer, if it is held."""
        self._num_chars -= len(self._bodies.pop(name, ""))

    def state(self) -> list[tuple[str, str]]:
        return list(self._bodies.items())

    def restore(self, state: Sequence[Sequence[str]]) -> None:
        self._bodies.clear()
        self._num_chars = 0
        for name, body in state:
            self.hold(name, body)
