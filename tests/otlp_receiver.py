"""A collector for tests: takes OTLP over HTTP on a free port and keeps the spans; it can also fail, wait or hang."""

import gzip
import threading
import time
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Manner(Enum):
    WELL = "answers"
    FAILING = "answers 503"
    HANGING = "takes the request and never answers"


@dataclass(frozen=True)
class ReceivedSpan:
    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]


class OtlpReceiver:
    """Receives until the end of the `with` block."""

    def __init__(self, manner: Manner = Manner.WELL) -> None:
        self.spans: list[ReceivedSpan] = []
        self.num_requests = 0
        self._leaving = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.num_requests += 1
                if manner is Manner.HANGING:
                    receiver._leaving.wait(60.0)
                    return
                if manner is Manner.FAILING:
                    self.send_error(503)
                    return
                assert self.path == "/v1/traces"
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.take(ExportTraceServiceRequest.FromString(body))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *words: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def take(self, request: ExportTraceServiceRequest) -> None:
        for group in request.resource_spans:
            named = {each.key: each.value.string_value for each in group.resource.attributes}
            for scope in group.scope_spans:
                for span in scope.spans:
                    kind = {each.key: _value(each.value) for each in span.attributes}
                    self.spans.append(
                        ReceivedSpan(
                            named["service.name"], span.name, span.trace_id.hex(), span.span_id.hex(),
                            span.parent_span_id.hex(), span.start_time_unix_nano, span.end_time_unix_nano, kind,
                        )
                    )  # fmt: skip

    def wait_for(self, num: int, within_s: float = 20.0) -> list[ReceivedSpan]:
        end = time.monotonic() + within_s
        while len(self.spans) < num:
            assert time.monotonic() < end, f"{len(self.spans)} of {num} spans came"
            time.sleep(0.01)
        return list(self.spans)

    def __enter__(self) -> "OtlpReceiver":
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5.0)


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
