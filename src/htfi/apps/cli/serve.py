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
@settings_option
@pace_option
def command(
    files: tuple[str, ...],
    follow: Path | None,
    folder: Path,
    address: str,
    target: Path | None,
    draft: Path | None,
    settings_file: Path | None,
    pace: float | None,
) -> None:
    """Answer programs and people over HTTP, from the record of a run.

    Without --follow a run of FILES (the embedded sample without any) is started beside it and ends with it. The
    service only reads: what it shows is what the run has recorded and released.
    """
    require_extra("htfi serve", "service", "fastapi", "uvicorn", "httptools", "uvloop")
    from htfi.apps.service.server import listen_at, serve
    from htfi.wiring.service.language_models import check_language_models
    from htfi.wiring.service.run_process import RunProcess

    if follow is not None and files:
        raise InvalidInput("--follow serves a run that is there: leave the files out")
    if draft is not None and target is None:
        raise InvalidInput("--draft drafts for a --target: name both")
    pair = tuple(str(one.resolve()) if one is not None else "" for one in (target, draft))
    check_language_models(*pair)
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
        serve({"": served}, listening, *pair)
    finally:
        if run is not None:
            run.stop()
