"""How long readings take, and so what load a decision faces: what the ladder chooses by beside the deadline.

The pipeline asks for `inputs` and measures its readings with `measure`. A run over files has no clock: a reading then
takes what the settings state, so that a recorded day gives the same decisions on any machine.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from htfi.domain.plan import LadderInputs, Rung
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.scheduling.config import FidelityConfig

HALF_LIFE_S = 5.0  # of an excess over the settings: so a rung that was too slow is tried again


class ReadingTimes:
    """The recent time of one reading at each rung, by a clock in ns; what the settings state where none is given.

    A peak estimate (as peak EWMA in load balancing): a slower reading counts at once, a faster one by half, and what
    exceeds the settings fades with a half-life.
    """

    def __init__(self, config: FidelityConfig, clock: Callable[[], int] | None = None) -> None:
        self._config = config
        self._clock = clock
        self._excess: dict[Rung, tuple[float, int]] = {}  # ms beyond the settings, and when

    @contextmanager
    def measure(self, rung: Rung, num: int) -> Generator[None]:
        """Measure the readings inside, `num` of them at a rung."""
        start_ns = self._clock() if self._clock is not None else 0
        yield
        if self._clock is not None and num > 0:
            now_ns = self._clock()
            sample_ms = (now_ns - start_ns) / NS_PER_MS / num - rung_time_ms(rung, self._config)
            known_ms = self._excess_ms(rung)
            excess_ms = sample_ms if sample_ms > known_ms else 0.5 * (known_ms + max(sample_ms, 0.0))
            self._excess[rung] = excess_ms, now_ns

    def _excess_ms(self, rung: Rung) -> float:
        if self._clock is None or rung not in self._excess:
            return 0.0
        excess_ms, at_ns = self._excess[rung]
        return excess_ms * 0.5 ** ((self._clock() - at_ns) / NS_PER_S / HALF_LIFE_S)

    def expected_ms(self, rung: Rung) -> float:
        return round(rung_time_ms(rung, self._config) + max(self._excess_ms(rung), 0.0), 3)

    def inputs(self, num_waiting: int, left_ms: float, divergence: float = 0.0) -> LadderInputs:
        """What the ladder sees, where so many readings wait and so much of the deadline is left."""
        edge_ms, speculative_ms = self.expected_ms(Rung.EDGE), self.expected_ms(Rung.SPECULATIVE)
        return LadderInputs(num_waiting, round(left_ms, 3), edge_ms, speculative_ms, divergence)


def deadline_of(inputs: LadderInputs) -> float:
    """The part of the time left that is one reading's: an equal share, or what the cheapest reading needs."""
    return max(inputs.left_ms / inputs.num_waiting, min(inputs.left_ms, inputs.edge_ms))


def left_after(inputs: LadderInputs, rung: Rung, config: FidelityConfig) -> float:
    """The time that is left for the next readings after one at a rung."""
    match rung:
        case Rung.TEMPLATE:
            needed_ms = 0.0
        case Rung.EDGE:
            needed_ms = inputs.edge_ms
        case Rung.SPECULATIVE | Rung.SECURE:
            needed_ms = inputs.speculative_ms
        case Rung.DEEP:
            needed_ms = config.deep_ms
    return inputs.left_ms - needed_ms


def rung_time_ms(rung: Rung, config: FidelityConfig) -> float:
    """The time that the settings allow for one reading at a rung."""
    match rung:
        case Rung.TEMPLATE:
            return 0.0
        case Rung.EDGE:
            return config.edge_ms
        case Rung.SPECULATIVE | Rung.SECURE:
            return config.speculative_ms
        case Rung.DEEP:
            return config.deep_ms
