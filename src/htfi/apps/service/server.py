"""The process that answers: uvicorn on one address, until a signal ends it."""

import resource
import signal
import socket
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import cast

import uvicorn

from htfi.apps.service.app import create_app, page_paths
from htfi.apps.service.certificate import ServerCertificate
from htfi.apps.service.early_refusal import EarlyRefusal
from htfi.apps.service.http_protocol import BoundedHttpProtocol
from htfi.apps.service.served_run import ServedRun
from htfi.apps.service.tenants import Tenants
from htfi.wiring.service.language_models import SHIPPED_PAIR, LanguageModelPair
from htfi.wiring.service.run_process import RunPlace
from htfi.wiring.telemetry import NO_PROCESS_TELEMETRY, ProcessTelemetry

_SWITCH_S = 0.0005  # at Python's own 5 ms an answer waits that long for the thread that follows the record
_TICKS_A_LOOK = 10  # of the server, a tenth of a second each
_GRACE_S = 5  # for answers under way when the service ends


def serve(
    places: Mapping[str, RunPlace],
    listening: socket.socket,
    tenants: Tenants | None = None,
    telemetry: ProcessTelemetry = NO_PROCESS_TELEMETRY,
    certificate: ServerCertificate | None = None,
    models: LanguageModelPair = SHIPPED_PAIR,
) -> None:
    """Answer for each tenant's run until SIGINT or SIGTERM; SIGHUP reads the certificate again."""
    sys.setswitchinterval(_SWITCH_S)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a connection is an open file
    app = create_app(places, tenants, telemetry, models)
    proxies = () if tenants is None else tenants.config.proxies
    refusing = None if tenants is None else EarlyRefusal(tenants, app.state.measured, page_paths()).answer
    protocol = cast("type[BoundedHttpProtocol]", partial(BoundedHttpProtocol, refusing))
    config = uvicorn.Config(
        app, loop="uvloop", http=protocol, ws="websockets-sansio", lifespan="on", log_level="warning",
        access_log=False, proxy_headers=bool(proxies), forwarded_allow_ips=list(proxies),
        server_header=False, timeout_graceful_shutdown=_GRACE_S, timeout_keep_alive=30, ws_max_size=1 << 16,
        ssl_context_factory=None if certificate is None else lambda _, __: certificate.context,
    )  # fmt: skip

    def end_streams() -> None:
        runs: dict[str, ServedRun] = app.state.runs
        for run in runs.values():
            run.record.end_streams()

    _EndingServer(config, end_streams, certificate).run(sockets=[listening])


class _EndingServer(uvicorn.Server):
    """Ends streams before it waits for connections; a signal that ends it is not raised again."""

    def __init__(
        self,
        config: uvicorn.Config,
        end_streams: Callable[[], None],
        certificate: ServerCertificate | None,
    ) -> None:
        super().__init__(config)
        self._end_streams, self._certificate = end_streams, certificate

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        if self._certificate is not None:
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._read_certificate)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        if self._certificate is not None and counter % _TICKS_A_LOOK == 0:
            self._certificate.reload_if_changed()
        return await super().on_tick(counter)

    def _read_certificate(self, *_: object) -> None:
        assert self._certificate is not None
        self._certificate.reload_or_say()
