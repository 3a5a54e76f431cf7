"""`htfi serve`: a run's forecasts, decisions and record over HTTP, with the run beside it or of its own folder."""

from pathlib import Path

import click

from htfi.apps.options import pace_option, settings_option
from htfi.domain.errors import InvalidInput, require_extra

EPILOG = """\b
Examples:
  htfi serve                       a run of the embedded sample
  htfi serve prices.csv --out run1 a run of your files, as it goes
  htfi serve --follow run1         a run of another shell, or an ended one
"""


@click.command("serve", epilog=EPILOG)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--follow",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Serve this run's folder; start no run.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("htfi-serve"),
    show_default=True,
    help="Folder of the run that is started.",
)
@click.option(
    "--listen",
    "address",
    default="127.0.0.1:8350",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to answer; port 0 takes any.",
)
@settings_option
@pace_option
def command(
    files: tuple[str, ...],
    follow: Path | None,
    folder: Path,
    address: str,
    settings_file: Path | None,
    pace: float | None,
) -> None:
    """Answer programs and people over HTTP, from the record of a run.

    Without --follow a run of FILES (the embedded sample without any) is started beside it and ends with it. The
    service only reads: what it shows is what the run has recorded and released.
    """
    require_extra("htfi serve", "service", "fastapi", "uvicorn", "httptools", "uvloop")
    from htfi.apps.service.server import serve
    from htfi.wiring.service.listening import listen_at
    from htfi.wiring.service.run_process import RunProcess

    if follow is not None and files:
        raise InvalidInput("--follow serves a run that is there: leave the files out")
    listening = listen_at(address)
    host, port = listening.getsockname()[:2]
    served = follow or folder
    run = None
    if follow is None:
        arguments = list(files)
        if settings_file is not None:
            arguments += ["--settings", str(settings_file)]
        if pace is not None:
            arguments += ["--pace", str(pace)]
        run = RunProcess(arguments, served, lambda line: click.echo(f"htfi: {line}", err=True))
    click.echo(f"htfi: http://{host}:{port} is ready: {served}")
    try:
        serve({"": served}, listening)
    finally:
        if run is not None:
            run.stop()
