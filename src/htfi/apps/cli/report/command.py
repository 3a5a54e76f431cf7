"""The `htfi report` command, and `write_report`, which `htfi run` calls at its end."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import write_atomically

if TYPE_CHECKING:
    from htfi.pipeline.record.decoded_once import DecodedOnce


@click.command(
    "report",
    epilog="""\b
Examples:
  htfi report build/sample            write build/sample/report.html
  htfi report DIR --out today.html    write it elsewhere
  htfi report DIR --open              open it in the browser
""",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The page's file.  [default: DIR/report.html]")
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
def command(folder: Path, out: Path | None, show: bool) -> None:
    """Write one HTML page about the run in DIR: forecasts and outcomes, scores, weights, quarantine.

    The page needs no network. Its decisions come from DIR's ledger, and its scores are recomputed.
    """
    page = write_report(folder, out)
    click.echo(f"{page}  {page.stat().st_size / 1e6:.1f} MB")
    if show:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def write_report(folder: Path, out: Path | None = None, decode: "DecodedOnce | None" = None) -> Path:
    """Make the page and return where it is. Memory and page are bounded, however long the run.

    `decode` holds what was decoded of the same ledger before.

    Raises: InvalidInput where `folder` holds no decisions, IntegrityError, DependencyUnavailable.
    """
    from htfi.apps.cli.report.facts import read_facts
    from htfi.apps.cli.report.page import render
    from htfi.apps.cli.report.survey import take_survey
    from htfi.apps.cli.report.tracks import choose_tracks, collect_tracks
    from htfi.pipeline.record.decoded_once import DecodedOnce
    from htfi.wiring.event_file import read_event_facts
    from htfi.wiring.outputs import REPORT, open_recorded

    events = read_event_facts(folder)
    with open_recorded(folder) as opened:
        recorded = opened.decoded_by(decode or DecodedOnce(opened.size))
        survey = take_survey(recorded.lines(), recorded.size, () if events is None else events.times)
        if survey is None:
            raise InvalidInput(
                f"{folder} holds no released decision yet: run `htfi run … --out {folder}` first"
            )
        tracks = collect_tracks(recorded.lines(), survey, choose_tracks(survey))
        html = render(read_facts(folder, recorded.log, recorded.size, events), survey, tracks)
    page = out or folder / REPORT
    try:
        write_atomically(page, html.encode(), private=out is None)
    except OSError as error:
        raise DependencyUnavailable(
            f"{page}: cannot be written: {error.strerror}; free some disk space and run again, or `htfi report` alone"
        ) from error
    return page
