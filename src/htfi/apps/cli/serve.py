"""`htfi serve`: a run's forecasts, decisions and record over HTTP, with the run beside it or of its own folder."""

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htfi.apps.options import check_served_run, governance_option, served_run_options, telemetry_options
from htfi.domain.errors import InvalidInput, require_extra
from htfi.wiring.service.run_process import RunPlace, RunProcess

if TYPE_CHECKING:
    from htfi.wiring.service.language_models import LanguageModelPair
    from htfi.wiring.telemetry import ProcessTelemetry, TelemetryOptions

EPILOG = """\b
Examples:
  htfi serve                       a run of the embedded sample
  htfi serve prices.csv --out run1 a run of your files, as it goes
  htfi serve --follow run1         a run of another shell, or an ended one
  htfi serve --service DIR         tenants with keys, each with its own run
"""


@click.command("serve", epilog=EPILOG)
@served_run_options
@click.option(
    "--service",
    "service_folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Serve the tenants that DIR/service.toml names.",
)
@click.option(
    "--listen",
    "address",
    default="127.0.0.1:8350",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to answer; port 0 takes any.",
)
@click.option(
    "--target",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of the language model that writes; the shipped one by default.",
)
@click.option(
    "--draft",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of the model that drafts for --target; without it none does.",
)
@click.option(
    "--certificate", type=click.Path(path_type=Path, dir_okay=False), help="Chain in PEM: answer by TLS."
)
@click.option(
    "--key", "private_key", type=click.Path(path_type=Path, dir_okay=False), help="Its private key."
)
@governance_option
@telemetry_options
def command(
    files: tuple[str, ...],
    follow: Path | None,
    service_folder: Path | None,
    folder: Path,
    address: str,
    target: Path | None,
    draft: Path | None,
    certificate: Path | None,
    private_key: Path | None,
    settings_file: Path | None,
    pace: float | None,
    governance: Path | None,
    telemetry: "TelemetryOptions",
) -> None:
    """Answer programs and people over HTTP, from the record of a run.

    Without --follow a run of FILES (the embedded sample without any) is started beside it and ends with it. What it
    shows is what the run has recorded and released; what people ask for is left in the run's folder, for the run.
    """
    require_extra("htfi serve", "service", "fastapi", "uvicorn", "httptools", "uvloop")
    from htfi.wiring.service.language_models import LanguageModelPair, check_language_models

    if draft is not None and target is None:
        raise InvalidInput("--draft drafts for a --target: name both")
    pair = LanguageModelPair(*(str(one.resolve()) if one is not None else "" for one in (target, draft)))
    check_language_models(pair)
    if service_folder is not None:
        if files or follow is not None or governance is not None:
            raise InvalidInput(
                "--service names runs and governance in its service.toml: leave files, --follow, --governance out"
            )
        if (certificate is None) != (private_key is None):
            raise InvalidInput("--certificate and --key belong together: give both")
        tls = None if certificate is None or private_key is None else (certificate, private_key)
        _serve_tenants(service_folder, address, tls, settings_file, pace, telemetry, pair)
        return
    if certificate is not None or private_key is not None:
        raise InvalidInput("--certificate and --key are for a service with keys: give --service DIR")
    from htfi.apps.service.server import serve
    from htfi.wiring.service.listening import listen_at

    check_served_run(files, follow)
    listening = listen_at(address)
    served = RunPlace(follow or folder, governance)
    with ExitStack() as closing:
        opened = _open_telemetry(telemetry, closing)
        if follow is None:
            closing.callback(_started(files, settings_file, pace, served).stop)
        _say_ready(listening, str(served.folder))
        serve({"": served}, listening, telemetry=opened, models=pair)


def _serve_tenants(
    folder: Path,
    address: str,
    tls: tuple[Path, Path] | None,
    settings_file: Path | None,
    pace: float | None,
    telemetry: "TelemetryOptions",
    models: "LanguageModelPair",
) -> None:
    from htfi.apps.service.certificate import ServerCertificate
    from htfi.apps.service.server import serve
    from htfi.apps.service.tenants import Tenants
    from htfi.wiring.service.listening import check_address, listen_at
    from htfi.wiring.service.tenants import open_issuers, open_store, read_service

    service = read_service(folder)
    store = open_store(service)
    tenants = Tenants(service.config, store, open_issuers(service))
    certificate = None if tls is None else ServerCertificate(*tls)
    listening = listen_at(address, is_open=True)
    check_address(listening.getsockname()[0], service.config, has_certificate=certificate is not None)
    runs = service.runs()
    with ExitStack() as closing:
        opened = _open_telemetry(telemetry, closing)
        for name, tenant in service.config.tenants.items():
            if tenant.files:
                files = [one if one == "sample" else str(folder / one) for one in tenant.files]
                settings = folder / tenant.settings if tenant.settings else settings_file
                closing.callback(_started(files, settings, pace, runs[name]).stop)
        _say_ready(listening, f"{len(runs)} tenants of {folder}", is_secure=certificate is not None)
        serve(runs, listening, tenants, opened, certificate, models)


def _open_telemetry(options: "TelemetryOptions", closing: ExitStack) -> "ProcessTelemetry":
    from htfi.wiring.telemetry import ProcessKind, open_telemetry

    opened = closing.enter_context(open_telemetry(options, ProcessKind.SERVICE, is_probed=True))
    if opened.port:
        click.echo(f"htfi: metrics at port {opened.port}, /metrics", err=True)
    return opened


def _started(files: Sequence[str], settings: Path | None, pace: float | None, place: RunPlace) -> RunProcess:

    arguments = [one for one in files if one != "sample"]
    if settings is not None:
        arguments += ["--settings", str(settings)]
    if pace is not None:
        arguments += ["--pace", str(pace)]
    if place.governance is not None:
        arguments += ["--governance", str(place.governance)]
    return RunProcess(arguments, place.folder, lambda line: click.echo(f"htfi: {line}", err=True))


def _say_ready(listening: socket.socket, what: str, *, is_secure: bool = False) -> None:
    host, port = listening.getsockname()[:2]
    click.echo(f"htfi: http{'s' if is_secure else ''}://{host}:{port} is ready: {what}")
