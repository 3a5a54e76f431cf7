"""The verdict on a candidate and what the governance log says of candidates: pure."""

import math

import msgspec
import pytest

from htfi.governance.sandbox.entries import (
    SHIPPED,
    CandidateLog,
    ModelPromoted,
    ModelRolledBack,
    SandboxVerdict,
    candidate_entries,
    encode_entry,
)
from htfi.governance.sandbox.results import TrialEnding, TrialResult
from htfi.governance.sandbox.trials import CandidateKind, TrialMarket, trials_of
from htfi.governance.sandbox.verdict import (
    MAX_FALSE_PASS,
    FailedCheck,
    SandboxCheck,
    failed_checks,
    permitted_chance,
)

GOOD = TrialResult(
    trial="simulated calm", ending=TrialEnding.FINISHED, num_events=300, num_forecasts=200, loss=1.001,
    loss_error=0.001, p_worse=1e-6, p_better=0.8, answer_p95_ms=4.0, champion_p95_ms=4.0,
)  # fmt: skip


def with_(**changes: object) -> TrialResult:
    return msgspec.structs.replace(GOOD, **changes)


def test_candidate_that_is_no_worse_passes():
    assert failed_checks([GOOD, with_(trial="simulated crisis")], 1) == []


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        ({"ending": TrialEnding.CRASHED}, SandboxCheck.ENDING),
        ({"p_worse": 0.04}, SandboxCheck.NOT_WORSE),
        ({"p_worse": None}, SandboxCheck.NOT_WORSE),  # what is not known does not pass
        ({"p_worse": math.nan}, SandboxCheck.NOT_WORSE),
        ({"num_invalid": 3}, SandboxCheck.VALID),
        ({"repeats": False}, SandboxCheck.REPEATS),
        ({"own_loss": 2.5}, SandboxCheck.ALONE),
        ({"own_loss": math.inf}, SandboxCheck.ALONE),
        ({"p_views": 0.5, "right_views": 0.4, "champion_right_views": 0.9}, SandboxCheck.VIEWS),
        ({"champion_moved": 0.01, "moved": 0.2}, SandboxCheck.ATTACKS),
        ({"champion_moved": 0.01, "moved": None}, SandboxCheck.ATTACKS),
        ({"num_withheld": 30}, SandboxCheck.POLICY),
        ({"num_released_more": 10}, SandboxCheck.POLICY),
        ({"answer_p95_ms": 90.0}, SandboxCheck.SPEED),
        ({"needed_events_per_s": 500.0, "events_per_s": 400.0}, SandboxCheck.LOAD),
        ({"needed_events_per_s": 500.0}, SandboxCheck.LOAD),
    ],
)
def test_each_check_rejects_alone(changed: dict[str, object], check: SandboxCheck):
    assert [one.check for one in failed_checks([with_(**changed)], 1)] == [check]


def test_candidate_that_no_trial_touches_is_rejected():
    assert [one.check for one in failed_checks([], 1)] == [SandboxCheck.ENDING]


def test_loss_far_lower_on_the_history_than_in_disguise_is_learnt_by_heart():
    known = with_(trial=TrialMarket.HISTORY.value, loss=0.7)
    assert failed_checks([known, with_(trial=TrialMarket.DISGUISED.value, loss=0.71)], 1) == []
    found = failed_checks([known, with_(trial=TrialMarket.DISGUISED.value, loss=1.0)], 1)
    assert [one.check for one in found] == [SandboxCheck.NOT_LEARNT]


def test_permitted_chances_of_all_tries_together_are_the_false_passes_permitted():
    assert permitted_chance(1) < MAX_FALSE_PASS
    total = sum(permitted_chance(k) for k in range(1, 20_000))
    assert total == pytest.approx(MAX_FALSE_PASS, rel=1e-3)
    assert total <= MAX_FALSE_PASS


def test_same_figures_pass_at_first_and_not_after_many_tries():
    close = with_(p_worse=0.01)
    assert failed_checks([close], 1) == []
    assert [one.check for one in failed_checks([close], 5)] == [SandboxCheck.NOT_WORSE]


def test_trials_of_news_come_only_with_candidates_that_read_it():
    numeric = trials_of(7, reads_news=False, is_numeric=True, num_bars=500)
    reading = trials_of(7, reads_news=True, is_numeric=False, num_bars=500)
    assert {one.news.value for one in numeric} == {"no news"}
    assert "no news" not in {one.news.value for one in reading}
    both = trials_of(7, reads_news=True, is_numeric=True, num_bars=500)
    assert len(both) == len(numeric) + len(reading)
    assert len({one.name for one in both}) == len({one.seed for one in both}) == len(both)


def verdict(
    digest: str, *, passed: bool = True, lineage: str = "settings", sharpe: float | None = 0.1
) -> SandboxVerdict:
    trials = trials_of(1, reads_news=False, is_numeric=True, num_bars=100)
    failed = () if passed else (FailedCheck(SandboxCheck.SPEED, "peak load", "slow"),)
    return SandboxVerdict(
        at_ns=1, candidate="new.toml", candidate_kind=CandidateKind.SETTINGS, digest=digest, lineage=lineage,
        champion_digest=SHIPPED, history_digest="h", trials=tuple(trials),
        results=(GOOD,), failed=failed, num_tries=1, permitted_chance=0.03, gain_sharpe=sharpe, gain_is_real=None,
        not_enforced=(), untried=(),
    )  # fmt: skip


def promoted(digest: str, at_ns: int = 2) -> ModelPromoted:
    return ModelPromoted(
        at_ns=at_ns, lineage="settings", digest=digest, place="p", verdict=0, by="Ann", why="w"
    )


def rolled_back(digest: str, to: str) -> ModelRolledBack:
    return ModelRolledBack(at_ns=3, lineage="settings", digest=digest, to=to, by="Ann", why="w")


def log_of(*entries: SandboxVerdict | ModelPromoted | ModelRolledBack) -> CandidateLog:
    return CandidateLog(tuple(enumerate(entries)))


def test_entries_come_back_as_they_were_among_entries_of_others():
    made = [verdict("a"), promoted("a"), rolled_back("a", SHIPPED)]
    other = b'{"kind":"stop","at_ns":5}'
    found = candidate_entries([other, encode_entry(made[0]), other, *map(encode_entry, made[1:])])
    assert found == [(1, made[0]), (3, made[1]), (4, made[2])]


def test_entry_names_its_kind_first():
    assert encode_entry(promoted("a")).startswith(b'{"kind":"model_promoted","at_ns":2,')


def test_roll_back_lets_the_promotion_before_serve_again():
    log = log_of(verdict("a"), promoted("a"), verdict("b"), promoted("b"))
    assert [one.digest for one in log.promoted()["settings"]] == ["a", "b"]
    log = log_of(*(one for _, one in log.entries), rolled_back("b", "a"))
    assert [one.digest for one in log.promoted()["settings"]] == ["a"]
    log = log_of(*(one for _, one in log.entries), rolled_back("a", SHIPPED), rolled_back("a", SHIPPED))
    assert log.promoted()["settings"] == []


def test_tries_are_counted_by_lineage_and_by_digest_since_the_last_promotion():
    log = log_of(verdict("a"), verdict("b", sharpe=None), verdict("c", lineage="models"))
    assert log.num_tries("new", "settings") == 2
    assert log.num_tries("c", "settings") == 3
    assert log.sharpes("new", "settings") == [0.1]
    after = log_of(*(one for _, one in log.entries), promoted("a"), verdict("d"))
    assert after.num_tries("new", "settings") == 1


def test_newest_verdict_on_a_digest_counts():
    log = log_of(verdict("a", passed=False), verdict("a"), verdict("b", passed=False))
    found = log.newest_verdict("a")
    assert found is not None
    assert (found[0], found[1].passed) == (1, True)
    assert log.newest_verdict("unknown") is None
