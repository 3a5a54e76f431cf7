"""`htfi mcp`: a run's forecasts and record as tools for agents, over standard input and output or HTTP."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from htfi.apps.options import check_served_run, served_run_options
from htfi.domain.errors import InvalidInput, require_extra

if TYPE_CHECKING:
    from htfi.library.serving.run import ReadableRun

EPILOG = """\b
Examples:
  htfi mcp --follow run1           tools over standard input and output
  htfi mcp prices.csv --out run1   the same, with a run of your files
  htfi mcp --follow run1 --listen 127.0.0.1:8351
"""


@click.command("mcp", epilog=EPILOG)
@served_run_options
@click.option(
    "--listen", "address", metavar="HOST:PORT", help="Streamable HTTP here, at /mcp; port 0 takes any."
)
@click.option(
    "--keys",
    "keys_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="TOML file of hashed keys and their scopes, for HTTP.",
)
@click.option("--public-url", default="", help="The URL that clients know it by, behind a proxy.")
@click.option("--issuer", default="", help="URL of the OAuth server that gives out tokens.")
def command(
    files: tuple[str, ...],
    follow: Path | None,
    folder: Path,
    address: str | None,
    keys_file: Path | None,
    public_url: str,
    issuer: str,
    settings_file: Path | None,
    pace: float | None,
) -> None:
    """Serve a run to agents by the Model Context Protocol: tools, resources, prompts.

    Without --follow a run of FILES (the embedded sample without any) is started beside it and ends with it. Nothing
    here changes a run. Text from news is screened and marked as data.
    """
    require_extra("htfi mcp", "mcp", "mcp", "uvicorn")
    from htfi.library.serving.run import ReadableRun
    from htfi.wiring.service.run_process import RunProcess

    check_served_run(files, follow)
    if address is None and (keys_file or public_url or issuer):
        raise InvalidInput("--keys, --public-url and --issuer are for HTTP: add --listen HOST:PORT")
    run = None
    if follow is None:
        arguments = list(files)
        if settings_file is not None:
            arguments += ["--settings", str(settings_file)]
        if pace is not None:
            arguments += ["--pace", str(pace)]
        run = RunProcess(arguments, folder, lambda line: click.echo(f"htfi: {line}", err=True))
    served = ReadableRun(follow or folder)
    try:
        if address is None:
            import asyncio

            from htfi.apps.mcp.server import serve_stdio

            asyncio.run(serve_stdio(served))
        else:
            _serve_http(served, address, keys_file, public_url, issuer)
    finally:
        if run is not None:
            run.stop()


def _serve_http(
    served: "ReadableRun", address: str, keys_file: Path | None, public_url: str, issuer: str
) -> None:
    from htfi.apps.mcp.access import read_keys
    from htfi.apps.mcp.http import PATH, HttpAccess, serve_http
    from htfi.wiring.service.listening import listen_at

    identify = None if keys_file is None else read_keys(keys_file)
    access = HttpAccess(identify, public_url, issuer)
    listening = listen_at(address, is_open=identify is not None)
    host, port = listening.getsockname()[:2]
    click.echo(f"htfi: http://{host}:{port}{PATH} is ready: {served.folder}")
    serve_http(served, access, listening)
