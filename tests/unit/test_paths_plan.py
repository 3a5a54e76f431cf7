"""Plans of paths: windows follow from costs and survival, and where a batch fills the machine sampling stays plain."""

import numpy as np

from htfi_train.paths.plan import (
    FewestPasses,
    GuessSource,
    LeastTime,
    PathProgress,
    PathRoundReport,
    PathStep,
    PositionAcceptance,
    fastest_step,
)

HALF = 0.5 ** np.arange(64)
SURE = 0.99 ** np.arange(64)
CURVES = {GuessSource.OWN: 0.9 ** np.arange(64), GuessSource.DRAFT: SURE}


def standing(
    num_paths: int = 16, left: int = 23, has_draft: bool = False, num_rounds: int = 0
) -> PathProgress:
    return PathProgress(np.full(num_paths, left), num_paths, has_draft, num_rounds)


def test_where_arithmetic_is_all_sampling_is_plain():
    full = lambda rows, tokens: 0.5 * rows * tokens  # noqa: E731 (a cost of one line)
    assert fastest_step(standing(100), CURVES, full, full).num_guesses == 0


def test_where_a_pass_costs_the_same_whatever_is_in_it_all_is_guessed():
    step = fastest_step(standing(), {**CURVES, GuessSource.OWN: SURE}, lambda *_: 10.0, lambda *_: 0.0)
    assert step.num_guesses >= 15


def test_windows_grow_with_survival_and_shrink_with_rows():
    def ms(rows: int, tokens: int) -> float:
        return 4.0 + 0.1 * rows * tokens

    def window(curve: np.ndarray, num: int) -> int:
        return fastest_step(standing(num), {GuessSource.OWN: curve}, ms, ms).num_guesses

    assert window(HALF, 4) < window(0.9 ** np.arange(64), 4) < window(SURE, 4)
    assert window(SURE, 64) < window(SURE, 4)
    assert window(HALF, 400) == 0


def test_a_draft_is_asked_where_it_earns_its_time():
    target = lambda _, tokens: 10.0 + tokens  # noqa: E731
    asked = fastest_step(standing(has_draft=True), CURVES, target, lambda _, tokens: 0.1 * tokens)
    assert asked.source is GuessSource.DRAFT
    dear = fastest_step(standing(has_draft=True), CURVES, target, lambda _, tokens: 9.0 * tokens)
    assert dear.source is GuessSource.OWN
    unread = fastest_step(standing(1, left=2, has_draft=True), CURVES, target, lambda _, tokens: 0.1 * tokens)
    assert unread.source is GuessSource.OWN  # reading the prefix would take longer than all that is left
    absent = fastest_step(standing(), CURVES, target, lambda _, tokens: 0.1 * tokens)
    assert absent.source is GuessSource.OWN


def test_no_window_is_longer_than_what_is_left():
    for left in (1, 2, 3, 7):
        step = fastest_step(standing(left=left), {GuessSource.OWN: SURE}, lambda *_: 1.0, lambda *_: 1.0)
        assert step.num_guesses <= left - 1


def test_few_paths_that_lack_much_do_not_make_all_others_wait_for_padding():
    left = np.array([20] + [1] * 63)
    step = fastest_step(
        PathProgress(left, 64, False),
        {GuessSource.OWN: SURE},
        lambda rows, tokens: 0.1 * rows * tokens,
        lambda *_: 0.0,
    )
    assert step.num_guesses == 0  # the many are done after one token; the one then has the batch to itself


def test_fewest_passes_drafts_first_and_refines_from_then_on():
    plan = FewestPasses()
    assert plan.next(standing(has_draft=True)) == PathStep(22, GuessSource.DRAFT)
    assert plan.next(standing(left=9, has_draft=True, num_rounds=1)) == PathStep(8, GuessSource.OWN)
    assert plan.next(standing()) == PathStep(22, GuessSource.OWN)


def test_a_place_of_which_nothing_is_known_is_like_the_prior_and_learns_from_rounds():
    survival = PositionAcceptance()
    prior = survival.curve()
    assert prior[0] == 1.0
    assert (np.diff(prior) < 0).all()
    for _ in range(20):
        survival.learn(np.array([100, 50, 25]), np.array([50, 25, 12]))
    learnt = survival.curve()
    assert abs(learnt[1] - 0.5) < 0.02
    assert abs(learnt[2] - 0.25) < 0.02
    assert (learnt[1:] < prior[1:]).all()


class Costs:
    """A machine that a batch does not fill, which the plan is first told wrongly about."""

    def __init__(self) -> None:
        self.ms = {window: 12.0 + window for window in range(65)}

    def learn(self, rows: int, tokens: int, ms: float) -> float:
        self.ms[tokens] = ms
        return ms

    def estimate(self, rows: int, tokens: int) -> float:
        return self.ms[tokens]


def test_one_slow_pass_does_not_close_a_window_for_ever():
    costs = Costs()
    plan = LeastTime(costs)
    best = plan.next(standing()).num_guesses
    costs.ms |= dict.fromkeys(range(2, 65), 900.0)
    assert plan.next(standing()).num_guesses == 0
    none = np.zeros(0, np.int64)
    for _ in range(2000):
        step = plan.next(standing())
        seen = np.full(step.num_guesses, 16) if step.num_guesses else none
        plan.learn(PathRoundReport(step, 16, seen, seen, 12.0 + step.num_guesses + 1, 0.0))
    assert plan.next(standing()).num_guesses >= best


def test_least_time_gives_up_guesses_that_fail_and_seldom_tries_them_again():
    plan = LeastTime()
    first = plan.next(standing(100))
    assert first.num_guesses > 0
    for _ in range(3):
        tried = np.array([100] + [0] * (first.num_guesses - 1))
        plan.learn(PathRoundReport(first, 100, tried, np.zeros_like(tried), 50.0, 0.0))
    none = np.zeros(0, np.int64)
    steps: list[int] = []
    for _ in range(200):
        step = plan.next(standing(100))
        steps.append(step.num_guesses)
        tried = np.full(step.num_guesses, 100) if step.num_guesses else none
        plan.learn(PathRoundReport(step, 100, tried, np.zeros_like(tried), 12.0, 0.0))
    assert steps.count(0) >= 190
    assert set(steps) == {0, 1}
