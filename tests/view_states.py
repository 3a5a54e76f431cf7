"""States of the terminal views for tests, on a clock that stands still until told."""

from htfi.apps.cli.view.state import RunCounters, ViewModel, ViewState
from htfi.pipeline.decided import DecidedSeries


class Seconds:
    """A clock that stands still until told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def state_of(decisions, title="sample", utc_ns=0, **counters) -> ViewState:
    desk = ViewModel(title, Seconds(), lambda: utc_ns)
    for decision in decisions:
        desk.record(DecidedSeries.of(decision))
    return desk.snapshot(
        RunCounters(clock_ns=1_223_668_800 * 10**9, num_decisions=len(decisions), **counters)
    )


def text_of(lines) -> str:
    return "\n".join(line.plain for line in lines)
