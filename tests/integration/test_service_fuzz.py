"""Generated requests to every path of the service, by Schemathesis: none ends in an error of the server."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_approvals_command import DECISION, asked
from test_trade_command import say, write_prices

from htfi.adapters.stores.held_news import HELD_NEWS, HeldNewsFile
from htfi.domain.events import News
from htfi.governance.checkpoints.state import asked_step
from htfi.governance.control.entries import CheckpointMoved, StopCause, Stopped, encode_governance
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.wiring.control import GovernanceLogFile
from service_process import ServiceProcess

NUM_EXAMPLES = 100  # of each operation, beside those that cover its parameters: some 3,300 in all
SLOW = "/v1/forecasts$|/v1/scenarios"  # a process of its own works these out, one at a time
CHECKS = "not_a_server_error,content_type_conformance,status_code_conformance,response_schema_conformance"


def make_run(folder: Path) -> Path:
    """A run that has traded, asks about a decision, holds back an item and was stopped."""
    write_prices(folder / "prices.csv")
    say("trade", folder / "prices.csv", "--out", folder / "run", "--plain", "--no-report")
    question = asked()
    step = asked_step(question)
    log = GovernanceLogFile(folder / "run")
    stop = Stopped(1, 1, "series:AAA/1d", "Ann", "bad prints", StopCause.COMMAND, "stop-1")
    wait = CheckpointMoved(
        step.at_ns, 1, DECISION, "asked", seen=step.seen, detail=step.detail, question=question
    )
    log.append_all([encode_governance(stop), encode_governance(wait)])
    log.close()
    held, item = (
        HeldNewsFile(folder / "run" / HELD_NEWS),
        News(1, 1, "wire", 1, "w1", "Acme to\u202e soar", ("AAA",)),
    )
    held.hold(item, Sanitiser().screen(item))
    held.close()
    return folder / "run"


def generate(program: str, folder: Path, service: ServiceProcess, num: int, *paths: str) -> int:
    """Ask so many generated requests of each operation; how many there were. All must be answered as documented."""
    command = [
        program, "--config-file", str(folder / "schemathesis.toml"), "run", f"{service.url}/v1/openapi.json",
        "--checks", CHECKS, "--phases", "coverage,fuzzing", "--seed", "21", "-n", str(num), "--continue-on-failure",
        "--request-timeout", "30", "--suppress-health-check", "all", "--no-color", *paths,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    found = re.search(r"(\d+) generated", done.stdout)
    assert found is not None, done.stdout[-6000:]
    return int(found[1])


@pytest.mark.slow
def test_no_generated_request_ends_in_an_error_of_the_server(tmp_path: Path) -> None:
    program = shutil.which("schemathesis")
    if program is None:
        pytest.skip("pip install 'schemathesis>=4.32,<5' to generate requests")
    run = make_run(tmp_path)
    (tmp_path / "schemathesis.toml").write_text(
        '[parameters]\n"path.number" = ["1", "2"]\n"path.item_id" = ["1", "w1"]\n"path.order_id" = ["d4", "d5"]\n'
        '"path.series" = ["AAA/1d", "BBB/1d"]\n"path.index" = [0, 7, 141]\n'
    )
    with ServiceProcess("--follow", str(run)) as service:
        num = generate(program, tmp_path, service, NUM_EXAMPLES, "--exclude-path-regex", f"/v1/stream|{SLOW}")
        num_slow = generate(program, tmp_path, service, 5, "--include-path-regex", SLOW)
    assert (num > 3_000, num_slow > 10) == (True, True)
