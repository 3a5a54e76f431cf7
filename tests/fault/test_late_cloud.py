"""A real edge whose cloud stops now and then: all that carries a provisional view is amended, killed or not."""

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.decision import Decision, Rung
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.verification import recompute_all
from link_processes import Stage, environment, finish, wait_for_lines, write_sources

pytestmark = pytest.mark.slow
NUM_DAYS = 60
LATE = {
    "HTFI_PIPELINE__DEADLINE_MS": "120",
    "HTFI_SCHEDULING__DEEP_BUDGET_MS": "4000",
    "HTFI_SCHEDULING__HIGH_DIVERGENCE": "0.4",
    "HTFI_SCHEDULING__MIN_INFLUENCE": "0",  # a new reader has earned too little for a reading in depth to be worth it
    "HTFI_NARRATIVE__DEEP_PATHS": "3",
}


def decisions(out: Path) -> list[Decision]:
    log = open_ledger_readonly(out)
    try:
        recompute_all(out, log, log.size, lambda _done, _total: None)
        return [decode_entry(entry) for entry in log.entries()]
    finally:
        log.close()


@pytest.mark.parametrize("num_kills", [0, 2])
def test_what_carries_a_provisional_view_is_amended_in_the_end(tmp_path: Path, num_kills: int) -> None:
    dice, env = random.Random(num_kills), environment(**LATE)
    sources = write_sources(tmp_path, NUM_DAYS)
    rare = sources[1].read_text().splitlines(keepends=True)[::4]  # so that most decisions keep a view
    sources[1].write_text("".join(rare))
    out = tmp_path / "out"
    with Stage(tmp_path) as stage:
        cloud = stage.cloud(env=env)
        started = [cloud.address]
        edge, said = stage.edge(sources, out, {"cloud1": started[0]}, "--pace", "2e6", env=env)
        for kill in range(num_kills):
            wait_for_lines(out, edge, 40 * (kill + 1))
            cloud.kill(signal.SIGSTOP)
            time.sleep(dice.uniform(0.2, 0.5))
            edge.kill()
            edge.wait(10.0)
            cloud.kill(signal.SIGCONT)
            edge, said = stage.edge(sources, out, {"cloud1": started[0]}, "--pace", "2e6", env=env)
        while edge.poll() is None:
            time.sleep(dice.uniform(0.05, 0.3))
            cloud.kill(signal.SIGSTOP)
            time.sleep(dice.uniform(0.2, 0.6))
            cloud.kill(signal.SIGCONT)
        finish(edge, said)
    found = decisions(out)
    amended = Counter(one.amends for one in found if one.amends)
    carrying = [one for one in found if one.view is not None and one.view.provisional]
    assert sum(not one.has_own_reading for one in carrying) > 3
    assert [one.id for one in carrying if one.id not in amended] == []
    assert set(amended.values()) == {1}
    assert {one.id for one in found if one.awaits_amendment} == set(amended)
    deep = [one for one in found if one.amends and one.plan.rung is Rung.DEEP]
    assert deep
    assert all(one.view and one.view.trace and len(one.view.trace.paths) == 3 for one in deep)
    done = CliRunner().invoke(cli, ["ledger", "replay", str(out), deep[0].id])
    assert done.exit_code == 0, done.output
