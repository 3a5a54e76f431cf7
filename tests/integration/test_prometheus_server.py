"""Debian's Prometheus: promtool checks rules and exposition, and a real server scrapes a real run."""

import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from metered_run import MeteredRun, bar_rows, scrape

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "htfi-alerts.yml"
MISSING = "install Debian's package prometheus"
PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")


def promtool(*words: object, text: str = "") -> str:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, *map(str, words)], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(PROMTOOL is None, reason=MISSING)
def test_promtool_takes_the_rules_and_the_example_of_what_to_scrape() -> None:
    assert "rules found" in promtool("check", "rules", RULES)
    assert "SUCCESS" in promtool("check", "config", RULES.with_name("prometheus.yml"))


@pytest.mark.skipif(PROMTOOL is None, reason=MISSING)
def test_alerts_fire_on_the_series_that_they_are_for(tmp_path: Path) -> None:
    text = (ROOT / "tests" / "data" / "alerts_test.yml").read_text(encoding="utf-8")
    assert "rule_files: []" in text
    (tmp_path / "tests.yml").write_text(
        text.replace("rule_files: []", f"rule_files: [{json.dumps(str(RULES))}]")
    )
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "tests.yml")


@pytest.mark.slow
@pytest.mark.skipif(PROMETHEUS is None or PROMTOOL is None, reason=MISSING)
def test_a_prometheus_scrapes_a_run_and_finds_what_its_ledger_holds(tmp_path: Path) -> None:
    assert PROMETHEUS is not None
    rows = bar_rows(40)
    with MeteredRun(tmp_path / "run") as run:
        run.feed(rows)
        seen = run.wait_for_events(len(rows) - 2)
        with urllib.request.urlopen(run.url, timeout=10) as answer:
            said = promtool("check", "metrics", text=answer.read().decode())
        assert [line for line in said.splitlines() if "htfi_" in line] == []
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        target = run.url.removeprefix("http://").removesuffix("/metrics")
        (tmp_path / "prometheus.yml").write_text(
            f"global: {{scrape_interval: 1s}}\nrule_files: [{json.dumps(str(RULES))}]\n"
            f"scrape_configs: [{{job_name: htfi-run, static_configs: [{{targets: ['{target}']}}]}}]\n"
        )
        server = subprocess.Popen(
            [
                PROMETHEUS, f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'db'}",
                f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            found = asked(port, "sum(htfi_decisions_total)")
            assert found == seen["htfi_ledger_entries"][()]
            assert asked(port, "htfi_events_total") == seen["htfi_events_total"][()]
            assert asked(port, 'up{job="htfi-run"}') == 1.0
        finally:
            server.terminate()
            server.wait(20.0)
        assert scrape(run.url)["htfi_ledger_entries"] == seen["htfi_ledger_entries"]
        run.end()


def asked(port: int, query: str) -> float:
    """The value of a query, once there is one."""
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    end = time.monotonic() + 30.0
    while True:
        assert time.monotonic() < end, f"no value of {query}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                result = json.loads(answer.read())["data"]["result"]
        except OSError:
            result = []
        if result:
            return float(result[0]["value"][1])
        time.sleep(0.1)
