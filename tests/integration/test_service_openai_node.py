"""Endpoints of OpenAI's form by its client for Node."""

import json
import subprocess
from pathlib import Path

import pytest

from node_packages import install, node_environment
from service_process import ServiceProcess
from tenant_service import record_run

ROOT = Path(__file__).parents[2]
SOURCE, FOLDER = ROOT / "tests/openai_node", ROOT / "build/openai_node"


@pytest.mark.slow
def test_nodes_client_reads_answers_streams_documents_points_and_errors(tmp_path: Path) -> None:
    environment = node_environment(20)
    install(SOURCE, FOLDER, environment)
    record_run(tmp_path / "run", ("ACME",), num_days=2)
    with ServiceProcess("--follow", str(tmp_path / "run")) as service:
        command = ["node", str(SOURCE / "ask.mjs"), service.url, str(FOLDER)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["streamed"] == found["whole"]
    assert found["usage"][1] == 24
    assert json.loads(found["document"])["side"] in ("up", "down")
    assert found["sizes"] == [384, 384]
    assert found["models"] == ["htfi-mini", "htfi-encoder"]
    assert found["refused"] == ["BadRequestError", 400, "temperature"]
