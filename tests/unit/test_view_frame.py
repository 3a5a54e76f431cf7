"""One frame of the terminal view, at any size and with any content."""

import io
import re
from functools import cache

import pytest
from rich.cells import cell_len
from rich.console import Console

from htfi.apps.cli.view.display import RUN_RENDERER, LineView, LiveView, open_view
from htfi.apps.cli.view.panels import format_seconds, frame, one_line
from htfi.apps.cli.view.state import RunCounters, ViewModel
from htfi.domain.decision import Regime
from htfi.pipeline.decided import DecidedSeries
from view_states import Seconds, state_of, text_of


@cache
def crowded(make_decisions, num_series):
    """Much to show of so many series, made once for all terminals."""
    return state_of(
        make_decisions(30, tuple(f"S{k:03}" for k in range(num_series))),
        headline="Fed " * 80,
        quarantine={"reason " * 9: 7, "b": 1},
        fraction_done=0.4,
    )


@pytest.mark.parametrize("width", [40, 80, 100, 120, 160])
@pytest.mark.parametrize("height", [8, 24, 60])
@pytest.mark.parametrize("num_series", [0, 1, 100])
def test_a_frame_never_exceeds_its_terminal(make_decisions, width, height, num_series):
    lines = frame(crowded(make_decisions, num_series), width, height)
    assert len(lines) <= height
    assert max(cell_len(line.plain) for line in lines) <= width


def test_a_single_series_gets_a_chart_and_its_figures(make_decisions):
    decisions = make_decisions(60)
    text = text_of(frame(state_of(decisions), 120, 40))
    last = decisions[-1]
    assert "SPX/1d" in text
    assert f"{last.last_price:,.2f}" in text
    assert "median" in text
    assert "−4.93%" in text or "−1.65%" in text
    assert last.rationale.text in text


def test_of_a_hundred_series_the_most_broken_come_first_and_the_rest_are_counted(make_decisions):
    decisions = make_decisions(1, tuple(f"S{k:03}" for k in range(100)))
    decisions.append(make_decisions(46, ("ZZZ",))[-1])
    assert decisions[-1].regime is Regime.SHOCK
    state = state_of(decisions)
    text = text_of(frame(state, 120, 30))
    assert state.series[0].name == "ZZZ/1d"
    shown = sum(f"S{k:03}/1d" in text for k in range(100))
    assert f"and {100 - shown} more, with less volatility" in text


def test_text_from_outside_cannot_send_escape_codes(make_decisions):
    evil = "\x1b]0;owned\x07\x1b[2Jnews\r\n"
    decisions = make_decisions(3, ("\x1b[31mEVIL",), headline=evil)
    state = state_of(decisions, title=evil, headline=evil, quarantine={evil: 1})
    console = Console(file=io.StringIO(), width=120, color_system=None)
    for line in frame(state, 120, 40):
        console.print(line)
    assert not set(console.file.getvalue()) & {"\x1b", "\x07", "\r"}


def test_markup_in_text_is_shown_as_it_is(make_decisions):
    text = text_of(frame(state_of(make_decisions(2), headline="[red]no[/red]"), 100, 30))
    assert "[red]no[/red]" in text


def test_the_one_line_names_all_that_is_counted(make_decisions):
    decisions = make_decisions(5, ("SPX", "VIX"))
    line = one_line(
        state_of(
            decisions,
            num_events=1234,
            num_withheld=2,
            ledger_size=10,
            ledger_root="abcdef0123",
            quarantine={"duplicate": 3, "zone": 4},
            fraction_done=0.25,
        )
    )
    for part in (
        "2008-10-10 20:00:00 UTC",
        "25%",
        "1,234 events",
        "10 decisions",
        "2 series",
        "abcdef01",
        "7 quar",
    ):
        assert part in line
    assert "2 withheld" in line


@pytest.mark.parametrize(("seconds", "words"), [(8.4, "0:08"), (754, "12:34"), (11100, "3:05:00")])
def test_seconds_are_written_as_a_clock(seconds, words):
    assert format_seconds(seconds) == words


def test_rates_and_time_left_follow_the_clock(make_decisions):
    seconds = Seconds()
    desk = ViewModel("sample", seconds)
    desk.snapshot(RunCounters(num_events=1000, num_decisions=10, fraction_done=0.5))
    seconds.now += 2
    state = desk.snapshot(RunCounters(num_events=3000, num_decisions=30, fraction_done=0.6))
    assert (state.events_per_s, state.decisions_per_s) == (1000, 10)
    assert state.eta_s == pytest.approx(8.0)


def test_without_a_known_end_there_is_no_time_left(make_decisions):
    assert state_of(make_decisions(2)).eta_s is None


def terminal(width=100, height=30):
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, _environ={"TERM": "xterm"}
    )


def test_a_pipe_gets_lines_and_a_terminal_the_live_view():
    assert isinstance(open_view(Console(file=io.StringIO()), plain=False), LineView)
    assert isinstance(open_view(terminal(), plain=True), LineView)
    assert isinstance(open_view(terminal(), plain=False), LiveView)


def test_the_live_view_waits_an_eighth_of_a_second(make_decisions):
    seconds = Seconds()
    with LiveView(RUN_RENDERER, terminal(), seconds) as view:
        assert view.due()
        view.update(state_of(make_decisions(3)))
        seconds.now += 0.12
        assert not view.due()
        seconds.now += 0.01
        assert view.due()


def test_a_slow_terminal_is_drawn_to_less_often(make_decisions):
    seconds, console = Seconds(), terminal()
    print_as_usual = console.print

    def print_slowly(*args, **kwargs):
        seconds.now += 0.1
        print_as_usual(*args, **kwargs)

    view = LiveView(RUN_RENDERER, console, seconds)
    with view:
        view._live.console.print = print_slowly
        view.update(state_of(make_decisions(3)))
        view._live.console.print = print_as_usual
        seconds.now += 1.0
        assert not view.due()
        seconds.now += 1.1
        assert view.due()


def test_lines_come_every_two_seconds_and_hold_no_codes(make_decisions):
    seconds, console = Seconds(), Console(file=io.StringIO(), width=40)
    with LineView(RUN_RENDERER, console, seconds) as view:
        assert not view.due()
        seconds.now += 2
        assert view.due()
        view.update(state_of(make_decisions(3)))
        assert not view.due()
    output = console.file.getvalue()
    assert output.count("\n") == 1
    assert "\x1b" not in output


def test_what_a_model_read_is_told_in_a_line_of_its_own(make_decisions) -> None:
    import msgspec

    from htfi.apps.cli.view.state import RunCounters, ViewModel
    from htfi.domain.news_view import NewsView

    (decision,) = make_decisions(num=1)
    view = NewsView(
        -1.0,
        2.0,
        1.5,
        0.51,
        (),
        decision.as_of_ns,
        1,
        "guidance",
        "unmoved",
        "{size} lower",
        "mini-target-int8@ab",
    )
    desk = ViewModel("title")
    desk.record(DecidedSeries.of(decision))
    assert desk.snapshot(RunCounters()).reading == ""
    desk.record(DecidedSeries.of(msgspec.structs.replace(decision, view=view)))
    assert desk.snapshot(RunCounters()).reading == (
        "SPX/1d by mini-target-int8: down by 2 standard deviations, volatility 50% above usual, "
        "confidence 51%: “2 standard deviations lower”"
    )


@pytest.mark.parametrize("width", [80, 160])
def test_every_figure_above_the_table_is_whole(make_decisions, width):
    state = state_of(
        make_decisions(30),
        num_events=123_456_789,
        ledger_size=1_234_567,
        ledger_root="abcdef0123",
        num_withheld=4_321,
        num_amended=987,
        quarantine={"price is negative, which no price can be": 81},
    )
    lines = [line.plain for line in frame(state, width, 40)]
    above = " ".join(lines[: lines.index("")])
    for figure in (
        "events 123,456,789 ",
        "decisions 30 ",
        "ledger 1,234,567 ",
        "withheld 4,321 ",
        "amended 987 ",
    ):
        assert figure in above
    assert re.search(r"quarantine 81(  |$)", above)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 50), (160, 50)])
def test_one_series_takes_the_rows_that_no_other_needs(make_decisions, width, height):
    lines = frame(state_of(make_decisions(200)), width, height)
    spare = height - len(lines)
    assert spare == 0 or sum("⠀" in line.plain or "█" in line.plain for line in lines) >= width // 3


@pytest.mark.parametrize("width", [80, 160])
def test_names_that_begin_alike_are_told_apart(make_decisions, width):
    symbols = tuple(f"{name}.US.PRIMARY.COMPOSITE_LISTING" for name in ("GILD", "GILT"))
    text = text_of(frame(state_of(make_decisions(30, symbols)), width, 40))
    for symbol in symbols:
        assert f"\n {symbol}/1d " in text


def test_a_name_longer_than_the_terminal_keeps_both_ends(make_decisions):
    text = text_of(frame(state_of(make_decisions(30, ("A" * 90 + "-first", "A" * 90 + "-second"))), 80, 40))
    assert "-first/1d " in text
    assert "-second/1d " in text


def test_the_news_and_what_was_read_are_of_the_same_item(make_decisions):
    import msgspec

    from htfi.domain.news_view import NewsView

    read, other = make_decisions(1, ("SPX", "VIX"))
    item = read.rationale.cited[0]
    view = NewsView(
        -1.0, 2.0, 1.5, 0.5, ("elsewhere", item), read.as_of_ns, 1, words="lower", reader="mini@ab"
    )
    state = state_of([msgspec.structs.replace(read, view=view), other], headline="Oil falls")
    assert "by mini" in state.reading
    assert state.news == read.rationale.slots["headline_a"]
    assert state_of([read, other], headline="Oil falls").news == "Oil falls"


def test_of_several_views_the_newest_is_told(make_decisions):
    import msgspec

    from htfi.domain.news_view import NewsView

    old, new = make_decisions(1, ("AAA", "BBB"))
    views = [
        NewsView(-1.0, 2.0, 1.5, 0.5, (), old.as_of_ns + later, 1, words="lower", reader="mini@ab")
        for later in (0, 5)
    ]
    decisions = [msgspec.structs.replace(one, view=view) for one, view in zip((old, new), views, strict=True)]
    assert state_of(decisions).reading.startswith("BBB/1d by mini")


def test_plain_lines_on_a_terminal_break_no_figure(make_decisions):
    seconds, console = Seconds(), terminal(width=80)
    with LineView(RUN_RENDERER, console, seconds) as view:
        view.update(
            state_of(make_decisions(3), num_events=123_456_789, ledger_size=1_234_567, num_withheld=4_321)
        )
    lines = console.file.getvalue().splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80
    for figure in ("123,456,789", "1,234,567", "4,321"):
        assert figure in console.file.getvalue()
