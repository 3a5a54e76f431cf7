"""A collector or a disk that takes nothing: what is told to telemetry is dropped and counted, and nobody waits."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from htfi.adapters.log_lines.writer import MAX_QUEUED_LINES, LogWriter
from htfi.adapters.otel.exporter import MAX_QUEUED_SPANS, SpanExport, open_span_export
from htfi.adapters.probes.server import ProbeResult, ProbeServer
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.telemetry import catalogue
from htfi.telemetry.logs import MAX_LINES_PER_S, LogEvent, LogLevel
from htfi.telemetry.spans import EndedSpan, SpanContext
from metered_run import scrape
from otlp_receiver import Manner, OtlpReceiver


def span(number: int) -> EndedSpan:
    return EndedSpan(
        "read", SpanContext(number + 1, number + 1, True), 0, 10, 20, {"htfi.num_tokens": number}
    )


def outcomes(export: SpanExport) -> dict[str, float]:
    return {labels[0]: value for spec, labels, value in export.readings() if spec is catalogue.SPANS}


@contextmanager
def closing(export: SpanExport) -> Iterator[SpanExport]:
    try:
        yield export
    finally:
        export.close()


def test_spans_arrive_with_their_ids_times_and_attributes() -> None:
    with OtlpReceiver() as receiver, closing(SpanExport(receiver.url, "htfi-run", "1", 0, 1_000)) as export:
        child = EndedSpan(
            "verify", SpanContext(7, 9, True), 8, 10, 20, {"htfi.decision_ids": ("a", "b")}, True
        )
        export(child)
        (found,) = receiver.wait_for(1)
        end = time.monotonic() + 10.0
        while outcomes(export) != {"exported": 1.0, "dropped": 0.0}:
            assert time.monotonic() < end
            time.sleep(0.01)
    assert (int(found.trace_id, 16), int(found.span_id, 16), int(found.parent_id, 16)) == (7, 9, 8)
    assert (found.start_ns, found.end_ns, found.service) == (1_010, 1_020, "htfi-run")
    assert found.attributes == {"htfi.decision_ids": ["a", "b"]}


@pytest.mark.slow
def test_a_collector_that_hangs_fills_a_bounded_queue_and_the_rest_is_counted() -> None:
    num = 3 * MAX_QUEUED_SPANS
    with (
        OtlpReceiver(Manner.HANGING) as receiver,
        closing(open_span_export(receiver.url, "x", "1")) as export,
    ):
        for number in range(num):
            export(span(number))
        assert outcomes(export)["exported"] == 0.0
        assert outcomes(export)["dropped"] >= num - 2 * MAX_QUEUED_SPANS > 0
        assert receiver.spans == []


def test_spans_that_a_collector_refuses_are_counted_as_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi.adapters.otel.exporter._TIMEOUT_S", 0.2)
    with OtlpReceiver(Manner.FAILING) as receiver:
        assert refused(receiver.url) == {"exported": 0.0, "dropped": 1.0}


def test_spans_for_a_collector_that_is_not_there_are_counted_as_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("htfi.adapters.otel.exporter._TIMEOUT_S", 0.2)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    assert refused(url) == {"exported": 0.0, "dropped": 1.0}


def refused(url: str) -> dict[str, float]:
    """What became of one span, once that is known."""
    export = open_span_export(url, "x", "1")
    export(span(1))
    export.close()
    end = time.monotonic() + 10.0
    while sum(outcomes(export).values()) < 1.0 and time.monotonic() < end:
        time.sleep(0.01)
    return outcomes(export)


@pytest.mark.parametrize("url", ["collector:4318", "ftp://a/b", "http://", ""])
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput, match="write http://HOST:PORT"):
        open_span_export(url, "x", "1")


def test_a_log_has_at_most_so_many_lines_of_an_event_a_second_and_counts_the_rest(tmp_path: Path) -> None:
    log = LogWriter(str(tmp_path / "log"), utc_ns=lambda: 1_700_000_000 * 10**9)
    for number in range(3 * MAX_LINES_PER_S):
        log.write(LogEvent.WITHHELD, LogLevel.WARNING, decision_id=f"d{number}")
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert len(lines) == MAX_LINES_PER_S + 1
    assert lines[0] == {
        "time": "2023-11-14T22:13:20.000000Z", "level": "warning", "event": "withheld", "decision_id": "d0",
    }  # fmt: skip
    assert (lines[-1]["event"], lines[-1]["fields"]) == ("lines_dropped", {"num": 2 * MAX_LINES_PER_S})
    assert {labels[0]: value for _, labels, value in log.readings()} == {
        "written": MAX_LINES_PER_S + 1.0,
        "dropped": 2.0 * MAX_LINES_PER_S,
    }


def test_a_pipe_that_nobody_reads_holds_up_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    seconds = iter(range(10**9))
    with os.fdopen(writing, "w") as stuck:
        monkeypatch.setattr("sys.stderr", stuck)
        log = LogWriter("-", utc_ns=lambda: next(seconds) * 10**9)
        for number in range(2 * MAX_QUEUED_LINES):
            log.write(LogEvent.PEER, peer="x" * 300, number=number)
        counted = {labels[0]: value for _, labels, value in log.readings()}
        assert counted["written"] + counted["dropped"] < 2 * MAX_QUEUED_LINES
        assert counted["dropped"] > MAX_QUEUED_LINES / 2
        draining = threading.Thread(
            target=lambda: [None for _ in iter(lambda: os.read(reading, 1 << 16), b"")]
        )
        draining.start()
        log.close()
    draining.join(10.0)
    os.close(reading)


def test_a_log_that_cannot_be_opened_stops_the_start_with_one_line(tmp_path: Path) -> None:
    with pytest.raises(DependencyUnavailable, match="cannot be opened"):
        LogWriter(str(tmp_path / "none" / "log"))


def test_a_page_that_fails_is_an_error_for_its_scraper_and_the_probes_go_on() -> None:
    def failing(_: str) -> tuple[str, bytes]:
        raise ValueError("no figures")

    pages = {
        "/bad": failing,
        "/good": lambda accept: ("text/plain", f"accept_total {len(accept)}\n".encode()),
    }
    with ProbeServer(
        "127.0.0.1:0", lambda: ProbeResult(True), lambda: ProbeResult(True), pages=pages
    ) as server:
        url = f"http://127.0.0.1:{server.port}"
        with pytest.raises(OSError, match="503"):
            scrape(f"{url}/bad")
        assert scrape(f"{url}/good", "text/plain") == {"accept_total": {(): 10.0}}
