"""The report's section on governance, and the line of it in the terminal."""

from htfi.apps.cli.report.governance import governance_html
from htfi.apps.cli.view.panels import one_line
from htfi.apps.cli.view.state import RunCounters, ViewState
from htfi.domain.governance import BreakerState
from htfi.governance.control.entries import BreakerMoved, Reenabled, StopCause, Stopped
from htfi.governance.control.state import ControlState, apply, bundle_words, held_words

STOP = Stopped(1_000_000_000, 4, "desk:rates", "Ann <b>", "a drill", StopCause.COMMAND, "s1")
TRIP = BreakerMoved(
    2_000_000_000, 7, "bands_left", "series:A/1d", BreakerState.OPEN, 31.25, 20.0, "12 of 20 outside"
)
END = Reenabled(3_000_000_000, 9, "desk:rates", "Bob", "the drill is over", "r1")


def test_stops_trips_and_who_ended_them_are_listed_newest_first_and_escaped() -> None:
    html = governance_html([STOP, TRIP, END])
    assert html.index("the drill is over (Bob)") < html.index("12 of 20 outside") < html.index("a drill (Ann")
    assert "31.25, 20" in html
    assert "<b>" not in html
    assert "Held back at the end of the run: bands_left of series:A/1d." in html
    assert "No policy bundle is in force" in html


def test_a_run_in_which_nothing_changed_has_no_such_section() -> None:
    assert governance_html([]) == ""


def test_the_terminal_names_what_is_held_back() -> None:
    state = apply(apply(ControlState(), STOP), TRIP)
    line = one_line(ViewState("run", RunCounters(held=held_words(state))))
    assert "held back: stop of desk:rates, bands_left of series:A/1d" in line
    assert "held back" not in one_line(ViewState("run", RunCounters()))
    assert held_words(apply(apply(state, END), TRIP)) == "bands_left of series:A/1d"
    assert bundle_words(ControlState()) == "No policy bundle is in force: the limits of the settings hold"
