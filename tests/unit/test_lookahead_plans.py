"""Planners of draft lengths against the best fixed length in hindsight, over made-up rounds; load, opt-outs, replay."""

import dataclasses

import numpy as np
import pytest

from htfi.decoding.draft_length.acceptance_curve import AcceptanceCurves
from htfi.decoding.draft_length.closed_form import DraftLengthConfig, ThroughputPlanner
from htfi.decoding.draft_length.pass_costs import NominalPassCosts, PassCostPlane
from htfi.decoding.draft_length.planner import BanditPlanner, FixedLengthPlanner, LengthRequest, RoundReport
from htfi.domain.errors import InvalidInput
from lookahead_rounds import MINI, MODEL_60M, MODEL_200M, World, best_fixed, gliding, ride, steady, stepping

DRAFT = PassCostPlane(0.02, 0.0, 0.12, 0.03)
WORLDS = {
    f"{size} {course}": World(target, rates)
    for size, target in (("mini", MINI), ("60M", MODEL_60M), ("200M", MODEL_200M))
    for course, rates in (
        ("good", steady(0.95)),
        ("fair", steady(0.8)),
        ("poor", steady(0.5)),
        ("bad", steady(0.1)),
        ("stepping", stepping(0.95, 0.3, 800)),
        ("gliding", gliding(0.97, 0.4)),
    )
}


def nominal(
    target: PassCostPlane = MODEL_60M, survival: AcceptanceCurves | None = None, **config
) -> ThroughputPlanner:
    return ThroughputPlanner(
        NominalPassCosts(target), NominalPassCosts(DRAFT), survival, DraftLengthConfig(**config)
    )


def known(rate: float) -> AcceptanceCurves:
    """A survival that is sure of its one rate."""
    return AcceptanceCurves(prior_rate=rate, prior_weight=1e6)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_closed_form_comes_near_the_best_fixed_length_in_hindsight(world):
    best_ms, _ = best_fixed(world)
    assert ride(world, ThroughputPlanner()).ms_per_token() <= 1.08 * best_ms


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_closed_form_never_loses_three_percent_on_plain_after_twenty_rounds(world):
    plain_ms = world.target.ms(1, 1)
    for seed in (1, 2):
        ridden = ride(dataclasses.replace(world, seed=seed), ThroughputPlanner())
        assert ridden.ms_per_token(skip_rounds=20) <= plain_ms / 0.97


@pytest.mark.parametrize("world", [WORLDS["mini poor"], WORLDS["60M good"], WORLDS["200M gliding"]])
def test_bandit_comes_within_a_seventh_of_the_best_fixed_length(world):
    best_ms, _ = best_fixed(world)
    assert ride(world, BanditPlanner()).ms_per_token() <= 1.15 * best_ms


def test_bandit_follows_a_draft_that_goes_stale():
    ridden = ride(World(MODEL_60M, stepping(0.97, 0.05, 2000)), BanditPlanner())
    half = int(np.searchsorted(np.cumsum(ridden.tokens), 2000))
    assert np.median(ridden.lengths[half - 80 : half]) >= 4
    assert np.median(ridden.lengths[-400:]) <= 1


@pytest.mark.parametrize(
    "planner",
    [FixedLengthPlanner(6), BanditPlanner(), ThroughputPlanner(), nominal()],
    ids=lambda each: each.name,
)
def test_no_planner_passes_a_cap_or_drafts_for_who_opted_out(planner):
    rng = np.random.default_rng(11)
    for _ in range(150):
        asks = [
            LengthRequest(str(rng.choice(["view", "path"])), int(cap))
            for cap in rng.integers(0, 9, rng.integers(1, 6))
        ]
        lengths = planner.plan(asks)
        assert planner.plan(asks) == lengths  # to ask changes nothing
        assert all(0 <= length <= ask.max_length for length, ask in zip(lengths, asks, strict=True))
        accepted = [int(rng.integers(0, length + 1)) for length in lengths]
        width = 1 + max(lengths)
        told = DRAFT.ms(len(asks), max(lengths)), MODEL_60M.ms(len(asks), width)
        planner.learn(
            [
                RoundReport(ask.kind, length, num, *told, len(asks), width)
                for ask, length, num in zip(asks, lengths, accepted, strict=True)
            ]
        )
    assert planner.plan([LengthRequest("view", 0)] * 3) == [0, 0, 0]
    assert planner.plan([]) == []
    planner.learn([])


def test_lengths_shrink_gradually_as_rows_join_and_throughput_never_drops():
    planner = nominal(MODEL_60M, known(0.85))
    curve = planner.survival.curve("view")
    before_length, before = 99, 0.0
    for rows in range(1, 129):
        price = planner.round_cost(rows)
        lengths = planner.plan([LengthRequest("view", 16)] * rows)
        tokens = rows + sum(sum(curve[:length]) for length in lengths)
        throughput = tokens / (price.width_ms[max(lengths)] + price.slot_ms * sum(lengths))
        assert throughput >= rows / price.width_ms[0] * (1 - 1e-9)  # plain is always open
        # one row more, and the plan of before kept: what the model says that joining costs at the most
        assert throughput >= before * (1 - planner.config.margin)
        assert max(lengths) <= before_length
        if rows > 2:
            assert before_length - max(lengths) <= 2
        before_length, before = max(lengths), throughput
    assert planner.plan([LengthRequest("view", 16)])[0] >= 5
    assert before_length <= 2


def test_off_above_rows_is_obeyed_where_it_is_set():
    planner = nominal(MODEL_60M, known(0.95), plain_above_rows=4)
    assert min(planner.plan([LengthRequest("view", 8)] * 4)) > 0
    assert planner.plan([LengthRequest("view", 8)] * 5) == [0] * 5


def test_a_sure_kind_is_drafted_further_than_a_doubtful_one_in_the_same_pass():
    survival = AcceptanceCurves(memory_rounds=1e6)
    for _ in range(300):
        survival.learn("sure", 8, 8)
        survival.learn("doubtful", 8, 0)
    lengths = nominal(MODEL_200M, survival).plan([LengthRequest("sure", 8), LengthRequest("doubtful", 8)])
    assert lengths[0] >= 6
    assert lengths[1] <= 1


def test_plain_is_probed_out_of_a_purse_and_taken_up_again_when_the_draft_recovers():
    planner = nominal(MINI)
    lengths = []
    for at in range(6000):
        length = planner.plan([LengthRequest("view", 8)])[0]
        lengths.append(length)
        planner.learn([RoundReport("view", length, length if at >= 3000 else 0, 0.1, 0.4, 1, 1 + length)])
    tried = np.array(lengths[200:3000]) > 0
    assert 0.005 < tried.mean() < 0.05
    assert np.median(lengths[-500:]) >= 4


def test_nominal_costs_plan_the_same_whatever_the_clock_says():
    world = dataclasses.replace(WORLDS["mini fair"], num_tokens=1500)
    noisy = ride(world, nominal(MINI))
    quiet = ride(dataclasses.replace(world, cost_noise=0.0), nominal(MINI))
    assert noisy.lengths.tolist() == quiet.lengths.tolist()


def test_forced_tokens_and_trees_are_priced_as_the_wider_pass_that_they_make():
    narrow, wide = nominal(MODEL_60M, known(0.8)), nominal(MODEL_60M, known(0.8))
    for _ in range(200):
        for planner, width in ((narrow, 5), (wide, 25)):
            planner.learn([RoundReport("view", 4, 3, 0.5, 5.0, 1, width)])
    assert wide.round_cost(1).width_ms[4] > 1.5 * narrow.round_cost(1).width_ms[4]
    assert wide.plan([LengthRequest("view", 16)])[0] < narrow.plan([LengthRequest("view", 16)])[0]


def test_settings_that_make_no_sense_are_refused():
    for wrong in ({"max_length": -1}, {"margin": 1.0}, {"probe_share": 0.6}, {"replan_rounds": 0}):
        with pytest.raises(InvalidInput, match="draft_length: "):
            DraftLengthConfig(**wrong)
    with pytest.raises(InvalidInput, match="length"):
        FixedLengthPlanner(-1)
    with pytest.raises(InvalidInput, match="bandit"):
        BanditPlanner(lengths=(4, 2))
    with pytest.raises(InvalidInput, match="bandit"):
        BanditPlanner(caution=-1.0)
