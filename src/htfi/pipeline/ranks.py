"""Ranks recorded divergences again, decision by decision in the ledger's order. `htfi ledger verify` asks for it.

The run ranked a moment's opinions among all before that moment, and an amendment's among all before it. A moment's
decisions follow each other, know the same inputs and are of different series.
"""

from htfi.domain.decision import Decision, Tilt
from htfi.forecasting.divergence import Divergences


class Ranks:
    """What the narrators' opinions diverged by so far, as the ledger tells it."""

    def __init__(self) -> None:
        self._divergences = Divergences()
        self._moment: tuple[int, str] | None = None
        self._series: set[str] = set()
        self._open: list[Tilt] = []  # of the moment in hand: not yet among those before

    def problems(self, decision: Decision) -> list[str]:
        """Whether the rank of this decision's divergence follows from the decisions before it."""
        moment = (decision.as_of_ns, decision.inputs.digest)
        if decision.amends or moment != self._moment or decision.series in self._series:
            self._close()
        tilt = decision.forecast.tilt
        found = [] if tilt is None else self._ranked(tilt)
        if decision.amends:
            self._close()
        else:
            self._moment = moment
            self._series.add(decision.series)
        return found

    def _ranked(self, tilt: Tilt) -> list[str]:
        self._open.append(tilt)
        (rank,) = self._divergences.ranks([tilt.narrator], [tilt.divergence])
        if rank == tilt.divergence_rank:
            return []
        return [
            f"its divergence ranks at {rank:g} among those before, not at {tilt.divergence_rank:g} as recorded"
        ]

    def _close(self) -> None:
        if self._open:
            self._divergences.learn(
                [tilt.narrator for tilt in self._open], [tilt.divergence for tilt in self._open]
            )
        self._open.clear()
        self._series.clear()
        self._moment = None
