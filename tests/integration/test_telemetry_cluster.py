"""One trace over two processes: the edge's decision point, and the cloud's passes as children of its reading."""

import signal
import time
from pathlib import Path

import pytest

from htfi.domain.decision import Decision
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from link_processes import Stage, environment, finish, write_sources
from metered_run import scrape
from otlp_receiver import OtlpReceiver


def decisions_of(folder: Path) -> list[Decision]:
    log = open_ledger_readonly(folder)
    try:
        return [decode_entry(one) for one in log.entries()]
    finally:
        log.close()


@pytest.mark.slow
def test_a_reading_at_a_cloud_is_in_the_trace_of_its_decision(tmp_path: Path) -> None:
    sources = write_sources(tmp_path, 40)
    (tmp_path / "said").mkdir()
    with OtlpReceiver() as receiver, Stage(tmp_path / "said") as stage:
        traced = ("--traces", receiver.url, "--trace-ratio", "1")
        cloud = stage.cloud("cloud1", *traced, "--metrics", "127.0.0.1:0")
        port = cloud.said.read_text().partition("metrics at port ")[2].partition(",")[0]
        edge, said = stage.edge(
            sources,
            tmp_path / "run",
            {"cloud1": cloud.address},
            *traced,
            env=environment(HTFI_PIPELINE__DEADLINE_MS="4000"),
        )
        finish(edge, said)
        at_cloud = scrape(f"http://127.0.0.1:{port}/metrics")
        assert at_cloud["htfi_cloud_tokens_total"][()] > 0
        assert at_cloud["htfi_peer_state"][(("peer", "edge1"), ("state", "dead"))] in (0.0, 1.0)
        cloud.process.terminate()
        cloud.process.wait(30.0)
    by_id = {span.span_id: span for span in receiver.spans}
    answers = [span for span in receiver.spans if span.name == "answer"]
    assert answers
    assert {span.service for span in answers} == {"htfi-cloud"}
    parents = [by_id[span.parent_id] for span in answers]
    assert {parent.name for parent in parents} == {"read"}
    assert {parent.service for parent in parents} == {"htfi-edge"}
    assert [span.trace_id for span in answers] == [parent.trace_id for parent in parents]
    passes = [span for span in receiver.spans if span.name in ("prefill", "verify")]
    assert {by_id[span.parent_id].name for span in passes} == {"answer"}
    assert sum(span.attributes["htfi.num_accepted"] for span in passes if span.name == "verify") > 0
    requests = [span for span in receiver.spans if span.name == "request"]
    assert len(requests) >= len(answers)
    drafts = [span for span in receiver.spans if span.name == "draft"]
    assert drafts
    for span in (*requests, *drafts):
        parent = by_id[span.parent_id]
        assert (parent.name, span.service) == ("read", "htfi-edge")
        assert parent.start_ns <= span.start_ns <= span.end_ns <= parent.end_ns
    roots = {span.trace_id: span for span in receiver.spans if span.name == "decision point"}
    assert set(roots) >= {span.trace_id for span in answers}
    for answer in answers[:3]:
        root = roots[answer.trace_id]
        assert root.start_ns <= answer.start_ns


@pytest.mark.slow
def test_an_answer_that_comes_late_is_an_amendment_in_the_trace_of_its_decision(tmp_path: Path) -> None:
    sources = write_sources(tmp_path, 30)
    (tmp_path / "said").mkdir()
    with OtlpReceiver() as receiver, Stage(tmp_path / "said") as stage:
        env = environment(HTFI_PIPELINE__DEADLINE_MS="120")
        cloud = stage.cloud("cloud1", env=env)
        traced = ("--traces", receiver.url, "--trace-ratio", "1")
        clouds = {"cloud1": cloud.address}
        edge, said = stage.edge(sources, tmp_path / "run", clouds, "--pace", "2e6", *traced, env=env)
        while edge.poll() is None:
            time.sleep(0.2)
            cloud.kill(signal.SIGSTOP)
            time.sleep(0.4)
            cloud.kill(signal.SIGCONT)
        finish(edge, said)
    amended = {
        one.id: one.amends
        for one in decisions_of(tmp_path / "run")
        if one.amends and not one.is_checkpoint_release
    }
    assert amended
    roots = {span.span_id: span for span in receiver.spans if span.name == "decision point"}
    spans = [span for span in receiver.spans if span.name == "amend"]
    assert {
        span.attributes["htfi.decision_ids"][0]: span.attributes["htfi.amends"] for span in spans
    } == amended
    for span in spans:
        root = roots[span.parent_id]
        assert (root.trace_id, span.service) == (span.trace_id, "htfi-edge")
        assert span.attributes["htfi.amends"] in root.attributes["htfi.decision_ids"]
        assert root.end_ns <= span.start_ns <= span.end_ns
    alone = [span for span in receiver.spans if span.name == "finish alone"]
    assert alone
    provisional = [
        span for span in receiver.spans if span.name == "request" and span.attributes["htfi.is_provisional"]
    ]
    assert len(provisional) >= len(alone)
