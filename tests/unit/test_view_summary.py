"""What a run says at its end."""

from pathlib import Path

import pytest

from htfi.apps.cli.summary import RunTotals, has_results_within_days, score_table, summary
from htfi.apps.cli.view.state import PeerStatus, RunCounters
from htfi.domain.peers import PeerState
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.forecasting.known_variance.event_facts import KindFacts, SurpriseFacts
from htfi.forecasting.known_variance.surprise_effects import Slope
from htfi.forecasting.scores import ScoreRow
from htfi.forecasting.track_record import TrackRecordRow


def totals(**changes) -> RunTotals:
    scores = [
        ScoreRow("fused", 1, 400, 0.0096, 0.905),
        ScoreRow("fused", 5, 396, 0.021, 0.80),
        ScoreRow("random_walk", 1, 400, 0.01, 0.91),
        ScoreRow("random_walk", 5, 396, 0.02, 0.9),
    ]
    values = {
        "scores": scores,
        "num_events": 5000,
        "num_decisions": 800,
        "num_resumed": 0,
        "num_withheld": 0,
        "elapsed_s": 0.5,
        "quarantine": {},
        "ledger_size": 800,
        "ledger_root": "ab" * 32,
        "outputs": [Path("run/report.html")],
    }
    return RunTotals(**(values | changes))


def text(lines) -> str:
    return "\n".join(line.plain for line in lines)


def test_scores_stand_beside_the_random_walk():
    fused = next(line for line in score_table(totals().scores, 120) if "fused" in line.plain)
    assert fused.plain.split() == ["fused", "0.00960", "0.960", "90.5%", "0.02100", "1.050", "80.0%"]


def test_a_run_without_a_random_walk_has_no_ratio():
    lines = score_table([ScoreRow("fused", 1, 10, 0.01, 0.9)], 120)
    assert lines[-1].plain.split() == ["fused", "0.01000", "–", "90.0%"]


def test_a_run_too_short_to_score_says_so():
    assert "nothing to score" in text(summary(totals(scores=[]), 120))


def test_the_summary_says_which_covariates_came_and_which_did_not():
    words = text(summary(totals(covariates=["VIX/1d"], missing_covariates=["VXN/1d"]), 120))
    assert (
        "VIX/1d in the volatility of the others; no bar of VXN/1d, which forecasting.covariates names"
        in words
    )
    assert "covariates" not in text(summary(totals(), 120))


def test_the_summary_names_counts_root_and_files():
    words = text(summary(totals(quarantine={"duplicate": 2, "no zone": 5}, num_withheld=3), 120))
    assert "5,000 events, 800 decisions; 800 in 0.5 s, 1,600 per second" in words
    assert "7 rows: 5 no zone; 2 duplicate" in words
    assert "3 by policy" in words
    assert "ab" * 32 in words
    assert "run/report.html" in words


def test_rows_of_a_calendar_that_were_not_read_are_counted():
    words = text(summary(totals(num_dropped_rows=1_213), 120))
    assert "1,213 rows of a calendar that could not matter: not read" in words
    assert "calendar" not in text(summary(totals(), 120))


def test_a_resumed_run_counts_only_its_own_decisions_for_speed():
    words = text(summary(totals(num_resumed=700), 120))
    assert "700 of them in earlier starts; 100 in 0.5 s, 200 per second" in words


def test_a_narrow_terminal_gets_the_ratios_alone():
    lines = score_table(totals().scores, 60)
    fused = next(line for line in lines if "fused" in line.plain)
    assert fused.plain.split() == ["fused", "0.960", "90.5%", "1.050", "80.0%"]
    assert max(len(line.plain) for line in lines) <= 60


def test_the_summary_tells_where_answers_were_written_and_that_none_was_lost():
    peer = PeerStatus("cloud-a", PeerState.HEALTHY, num_placed=120, routes={"in flight": 88, "plain": 32})
    counters = RunCounters(
        peers=(peer,), num_answered_locally=5, num_provisional=3, num_amended=2, num_pending=1
    )
    words = text(summary(totals(nodes=counters), 120))
    assert "cloud-a 120 (88 in flight, 32 plain); local 5" in words
    assert "3 provisional, 2 amended, 1 without an answer of the target; 0 lost" in words
    assert "placed" not in text(summary(totals(nodes=RunCounters()), 120))
    assert "placed" not in text(summary(totals(), 120))


@pytest.mark.parametrize("width", [80, 160])
def test_the_summary_keeps_to_the_width_and_cuts_nothing(width):
    told = totals(
        quarantine={"price is negative": 81, "time stamp without a zone": 5}, outputs=[Path("a" * 40)]
    )
    lines = summary(told, width)
    assert max(len(line.plain) for line in lines) <= width
    words = " ".join(text(lines).split())
    assert "86 rows: 81 price is negative; 5 time stamp without a zone" in words
    assert "ab" * 32 in words
    assert "a" * 40 in words
    assert "…" not in words


def test_readers_with_one_short_name_are_told_apart():
    rows = [
        TrackRecordRow("mini@d7d586dafc64", 1, 285, 0.01, 0.011, 0.11),
        TrackRecordRow("draft@48d2d06d8abf", 1, 2, 0.01, 0.02, 0.16),
        TrackRecordRow("draft@48d2d06d8abf, then mini@d7d586dafc64", 1, 7, 0.01, 0.01, 0.1),
        TrackRecordRow("mini@0123456789ab", 1, 9, 0.01, 0.009, 0.2),
        TrackRecordRow("mini@d7d586dafc64, with draft@48d2d06d8abf", 1, 3, 0.01, 0.01, 0.3),
    ]
    words = " ".join(text(summary(totals(narrators=rows), 160)).split())
    assert "285 views by mini@d7d586dafc64:" in words
    assert "9 views by mini@0123456789ab:" in words
    assert "2 views by draft:" in words
    assert "7 views by draft, then mini:" in words
    assert "3 views by mini, with draft:" in words


def test_scores_of_many_horizons_go_on_beneath_themselves():
    scores = [
        ScoreRow(name, h, 400, 0.01, 0.9) for name in ("fused", "random_walk") for h in (1, 2, 3, 5, 10, 22)
    ]
    lines = [line.plain for line in score_table(scores, 80)]
    assert max(map(len, lines)) <= 80
    assert sum("fused" in line for line in lines) == 2
    assert all(f"{horizon} ahead" in " ".join(lines) for horizon in (1, 2, 3, 5, 10, 22))


def kind(name: str, factor: float, num_surprises: int = 0) -> KindFacts:
    effect = Slope(0.1, 0.0, 0.2)
    surprise = SurpriseFacts(num=num_surprises, move=effect, variance=effect) if num_surprises else None
    return KindFacts(
        kind=name, assets="fx", length_ns=1, num_seen=12, prior_factor=1.0, learnt_factor=factor,
        surprise=surprise, series=[],
    )  # fmt: skip


def events_line(**changes) -> str:
    lines = text(summary(totals(num_scheduled=24, **changes), 120, wraps=False)).splitlines()
    (found,) = [line.removeprefix(" events").strip() for line in lines if line.startswith(" events")]
    return found


def test_only_events_that_change_a_band_by_a_tenth_are_named():
    kinds = [
        kind("us_payrolls", 1.9, 12),
        kind("us_cpi", 1.04),
        kind("de_ifo", 0.95),
        kind("market_half_day", 0.7),
    ]
    assert events_line(events=kinds) == (
        "wider bands before us payrolls × 1.9 (12 seen); narrower bands before market half day × 0.7 (12 seen); "
        "12 surprises learnt from"
    )
    assert events_line(events=[kind("us_cpi", 1.2)]) == "wider bands before us cpi × 1.2 (12 seen)"


def test_results_between_sessions_are_said_to_widen_what_follows():
    assert events_line(has_results_between_sessions=True).startswith("results of a company widen the hours")
    results = [ScheduledEvent(time_ns=1, kind="earnings", name="Q3", symbol="AAPL")]
    assert has_results_within_days(results, ["AAPL/1h"])
    assert not has_results_within_days(results, ["AAPL/1d", "MSFT/1h"])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"events": [kind("us_cpi", 1.04)]}, "what their bars held, 1 kind, changes none by a tenth"),
        ({}, "none of their bars held one with an effect"),
        (
            {"num_days_of_others": 3},
            "of daily bars of what is no pair of currencies results of the company alone do, and it states none in "
            "this time",
        ),
        (
            {"num_days_of_others": 3, "has_other_bars": True},
            "of daily bars of what is no pair of currencies results of the company alone do, and none of their other "
            "bars held one with an effect",
        ),
    ],
)
def test_a_calendar_that_moves_no_band_says_why(changes, why):
    assert events_line(**changes) == f"no event of the calendar moves the bands of these series: {why}"


def test_a_run_without_a_calendar_says_nothing_of_events():
    assert "\n events" not in text(summary(totals(), 120))
