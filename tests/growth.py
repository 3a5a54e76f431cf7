"""How the work of a call grows with its input, in the processor's time: what else the machine does changes nothing."""

import time
from collections.abc import Callable

SLACK = 6.0  # above what is in proportion; the square of eight times the text is 64 times the work
FLOOR_S = 0.002  # less than this cannot be told from the clock's own steps


def cpu_s(work: Callable[[], object]) -> float:
    """The least of three runs, in seconds of this thread."""
    best_s = float("inf")
    for _ in range(3):
        began_s = time.thread_time()
        work()
        best_s = min(best_s, time.thread_time() - began_s)
    return best_s


def assert_in_proportion(work: Callable[[int], object], small: int, large: int) -> None:
    """That `work` on an input of size `large` costs no more than in proportion to `small`, with some slack."""
    work(small)
    allowed_s = SLACK * large / small * max(cpu_s(lambda: work(small)), FLOOR_S)
    spent_s = cpu_s(lambda: work(large))
    assert spent_s < allowed_s, f"{spent_s:.3f} s of processor time for {large}, {allowed_s:.3f} s allowed"
