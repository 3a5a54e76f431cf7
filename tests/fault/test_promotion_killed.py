"""SIGKILL at any moment of promotions and roll-backs: what serves is the state before or after."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from htfi.wiring.governance_log import open_governance_log
from htfi.wiring.sandbox.promotion import promoted_models
from sandbox_verdicts import record_verdict, settings_file

WRITER = """
import sys
from pathlib import Path
from htfi.wiring.sandbox.promotion import promote, roll_back
who = {"by": "Ann", "why": "w", "now_ns": 1}
folder, file = Path(sys.argv[1]), Path(sys.argv[2])
print("ready", flush=True)
while True:
    promote(file, folder, **who)
    roll_back("settings", folder, **who)
"""


def test_killed_promotions_leave_one_of_two_states(tmp_path: Path):
    governance, file = tmp_path / "G", settings_file(tmp_path / "a.toml", 0.95)
    digest = record_verdict(file, governance).digest
    rng = random.Random(19)
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(governance), str(file)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(rng.uniform(0.05, 0.25))
        child.kill()
        child.wait()
        child.stdout.close()
        found = promoted_models(governance)
        assert found.digests in ({}, {"settings": (digest,)})
        assert found.tables == ({"forecasting": {"ewma_decay": 0.95}} if found.digests else {})
        log = open_governance_log(governance)
        try:
            assert log.verify().size > 1
        finally:
            log.close()
        if found.digests:  # the next child begins with a promotion
            subprocess.run(
                [sys.executable, "-c", WRITER.replace("while True:\n    promote(file, folder, **who)\n", "if True:\n"),
                 str(governance), str(file)], check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
