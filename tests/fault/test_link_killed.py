"""SIGKILL and SIGSTOP of real edges and clouds: every reading is answered once, with the embedded run's tokens."""

import random
import signal
import time
from pathlib import Path

import pytest

from htfi_eval.faulty_link.conditions import LinkConditions
from htfi_eval.faulty_link.link import FaultyLink
from link_processes import (
    RUN_S,
    Outcome,
    Stage,
    environment,
    finish,
    frozen,
    lines,
    outcome,
    same_answers,
    wait_for_lines,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", [1, 2])
def test_a_cloud_killed_in_mid_round_and_started_again_costs_no_request(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    cloud = stage.cloud()
    with FaultyLink(cloud.address, LinkConditions(rtt_ms=dice.choice((0, 10))), seed) as link:
        edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": link.address})
        for _ in range(2):
            wait_for_lines(tmp_path / "out", edge, len(lines(tmp_path / "out")) + dice.randrange(10, 40))
            time.sleep(dice.random() * 0.02)
            assert edge.poll() is None, "it ended before the cloud was killed: nothing is tested"
            cloud.kill()
            time.sleep(dice.random() * 0.5)
            cloud = stage.cloud()
            link.set_target(cloud.address)
        finish(edge, said, f"seed {seed}: {link.describe()}")
        got = outcome(tmp_path / "out")
        same_answers(got, embedded, f"seed {seed}: {link.describe()}\n{said.read_text()[-2000:]}")
        assert any("cloud1" in place for place in got.places)
        assert not got.provisional, f"the cloud came back, and amended nothing\n{link.describe()}"


def test_an_edge_whose_cloud_never_comes_back_ends_with_every_decision_made(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path
) -> None:
    cloud = stage.cloud()
    brief = environment(HTFI_PIPELINE__LATE_WAIT_MS="2000")
    edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address}, env=brief)
    wait_for_lines(tmp_path / "out", edge, 20)
    cloud.kill()
    finish(edge, said)
    got = outcome(tmp_path / "out")
    same_answers(got, embedded, said.read_text()[-2000:])
    assert got.provisional, "its draft has said what no target could"


@pytest.mark.parametrize("seed", [1, 2])
def test_an_edge_killed_again_and_again_loses_no_decision_and_makes_none_twice(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    cloud = stage.cloud()
    ends: list[int] = []
    for _ in range(4):
        edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address})
        wait_for_lines(tmp_path / "out", edge, dice.randrange(100))
        time.sleep(dice.random() * 0.02)
        edge.kill()
        ends.append(edge.wait(10.0))
    assert -signal.SIGKILL in ends, f"seed {seed}: {ends}"
    edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address})
    finish(edge, said, f"seed {seed}")
    same_answers(outcome(tmp_path / "out"), embedded, f"seed {seed}\n{said.read_text()[-2000:]}")


@pytest.mark.parametrize("seed", [1])
def test_both_killed_at_once_go_on_where_they_were(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    for _ in range(3):
        cloud = stage.cloud()
        edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address})
        wait_for_lines(tmp_path / "out", edge, len(lines(tmp_path / "out")) + dice.randrange(5, 30))
        cloud.process.kill()
        edge.kill()
        edge.wait(10.0)
        cloud.process.wait(10.0)
    cloud = stage.cloud()
    edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address})
    finish(edge, said, f"seed {seed}")
    same_answers(outcome(tmp_path / "out"), embedded, f"seed {seed}\n{said.read_text()[-2000:]}")


def test_a_cloud_that_freezes_for_three_seconds_delays_no_decision_and_amends_them(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path
) -> None:
    cloud = stage.cloud()
    edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address})
    wait_for_lines(tmp_path / "out", edge, 20)
    with frozen(cloud.process):
        num_before, began = len(lines(tmp_path / "out")), time.monotonic()
        wait_for_lines(tmp_path / "out", edge, num_before + 3)
        spent_s = time.monotonic() - began
        time.sleep(max(0.0, 3.0 - spent_s))
    assert spent_s < RUN_S, "the edge waited for a frozen cloud"
    finish(edge, said)
    got = outcome(tmp_path / "out")
    same_answers(got, embedded, said.read_text()[-2000:])
    assert got.num_amended, "what the draft said meanwhile was never amended"


def test_with_a_second_cloud_the_death_of_the_first_is_hardly_felt(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path
) -> None:
    first, second = stage.cloud("cloud1"), stage.cloud("cloud2")
    edge, said = stage.edge(
        link_sources, tmp_path / "out", {"cloud1": first.address, "cloud2": second.address}
    )
    wait_for_lines(tmp_path / "out", edge, 25)
    assert edge.poll() is None
    first.kill()
    finish(edge, said)
    got = outcome(tmp_path / "out")
    same_answers(got, embedded, said.read_text()[-2000:])
    assert not got.provisional, "the second cloud answers what the first had begun"


def test_a_cloud_that_is_told_to_stop_finishes_what_it_has_and_another_takes_over(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path
) -> None:
    first, second = stage.cloud("cloud1"), stage.cloud("cloud2")
    edge, said = stage.edge(
        link_sources, tmp_path / "out", {"cloud1": first.address, "cloud2": second.address}
    )
    wait_for_lines(tmp_path / "out", edge, 25)
    first.kill(signal.SIGTERM)
    assert first.process.wait(35.0) == 0, first.said.read_text()
    finish(edge, said)
    got = outcome(tmp_path / "out")
    same_answers(got, embedded, said.read_text()[-2000:])
    assert not got.provisional


def test_an_edge_that_freezes_for_three_seconds_goes_on_where_it_was(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path
) -> None:
    cloud = stage.cloud()
    edge, said = stage.edge(link_sources, tmp_path / "out", {"cloud1": cloud.address})
    wait_for_lines(tmp_path / "out", edge, 20)
    assert edge.poll() is None
    with frozen(edge):
        time.sleep(3.0)
    finish(edge, said)
    got = outcome(tmp_path / "out")
    same_answers(got, embedded, said.read_text()[-2000:])
    assert not got.provisional
