"""Everything at once, seeded: three edges and two clouds that are killed and frozen, over links in changing weather."""

import contextlib
import random
import signal
import time
from pathlib import Path

import pytest

from htfi_eval.faulty_link.conditions import CLEAR, LinkConditions
from htfi_eval.faulty_link.link import FaultyLink
from link_processes import Cloud, Outcome, Stage, finish, outcome, same_answers, wait_for_lines

pytestmark = pytest.mark.slow
NUM_DEEDS = 12
CLOUDS = ("cloud1", "cloud2")


def weather(dice: random.Random) -> LinkConditions:
    return dice.choice(
        (
            CLEAR,
            LinkConditions(rtt_ms=dice.choice((5, 50, 150)), jitter_ms=dice.choice((0, 5))),
            LinkConditions(bytes_per_s=50_000, burst_bytes=2_000),
            LinkConditions(is_stalled=True),
            LinkConditions(refuses=True),
            LinkConditions(resets_after_bytes=dice.randrange(1, 30_000)),
            LinkConditions(corrupt_rate=1e-4),
            LinkConditions(duplicate_rate=0.02),
        )
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_any_storm_every_edge_has_every_answer(
    stage: Stage, link_sources: list[Path], embedded: Outcome, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    clouds: dict[str, Cloud] = {name: stage.cloud(name) for name in CLOUDS}
    deeds: list[str] = []
    with contextlib.ExitStack() as stack:
        links = {
            name: stack.enter_context(FaultyLink(cloud.address, seed=seed)) for name, cloud in clouds.items()
        }
        addresses = {name: link.address for name, link in links.items()}
        edges = {
            name: stage.edge(link_sources, tmp_path / name, addresses, name=name)
            for name in ("edge1", "edge2", "edge3")
        }
        for name, (edge, _) in edges.items():
            wait_for_lines(tmp_path / name, edge, 3)
        for _ in range(NUM_DEEDS):
            name = dice.choice(CLOUDS)
            deed = dice.choice(("kill cloud", "freeze cloud", "kill edge", "weather", "weather", "reset"))
            deeds.append(f"{deed} {name}")
            if deed == "kill cloud":
                clouds[name].kill()
                clouds[name] = stage.cloud(name)
                links[name].set_target(clouds[name].address)
            elif deed == "freeze cloud":
                clouds[name].process.send_signal(signal.SIGSTOP)
                time.sleep(dice.uniform(0.1, 1.5))
                clouds[name].process.send_signal(signal.SIGCONT)
            elif deed == "kill edge":
                which = dice.choice(list(edges))
                edges[which][0].kill()
                edges[which][0].wait(10.0)
                edges[which] = stage.edge(link_sources, tmp_path / which, addresses, name=which)
            elif deed == "weather":
                links[name].conditions = weather(dice)
                deeds[-1] += f": {links[name].conditions}"
            else:
                links[name].reset()
            time.sleep(dice.uniform(0.0, 0.6))
        for link in links.values():
            link.conditions = CLEAR
        told = f"seed {seed}: " + "; ".join(deeds)
        for name, (edge, said) in edges.items():
            finish(edge, said, told)
            story = f"{told}\n{name}\n{said.read_text()[-2500:]}"
            got = outcome(tmp_path / name)
            same_answers(got, embedded, story)
            assert not got.provisional, f"{len(got.provisional)} never amended\n{story}"
        for cloud in clouds.values():
            assert cloud.process.poll() is None, f"{told}\n{cloud.said.read_text()[-2500:]}"
            assert "Traceback" not in cloud.said.read_text(), f"{told}\n{cloud.said.read_text()[-2500:]}"
