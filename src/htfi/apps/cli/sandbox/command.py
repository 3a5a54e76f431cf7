"""`htfi sandbox`: the command, its progress, and its answer as text and JSON."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htfi.apps.options import PERSON, key_option
from htfi.domain.content_marking import FIELD, content_marking

if TYPE_CHECKING:
    from htfi.wiring.sandbox.examination import Examination

REJECTED = 3  # exit status

EPILOG = """\b
Examples:
  htfi sandbox models/new-draft --governance G     a model folder
  htfi sandbox experts.toml --governance G         settings
  htfi sandbox candidate.py                        an expert, not recorded
  htfi sandbox new.toml --champion old.toml        not against what serves
  htfi sandbox new.toml --history prices.parquet --html build/verdict.html

Then: htfi models promote models/new-draft --governance G --by NAME --why TEXT
"""


@click.command("sandbox", short_help="Try a candidate before it serves.", epilog=EPILOG)
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option(
    "--champion", type=click.Path(path_type=Path), help="What to compare with.  [default: what serves]"
)
@click.option(
    "--governance", type=click.Path(path_type=Path, file_okay=False),
    help="Governance folder, which records the verdict.",
)  # fmt: skip
@click.option(
    "--history", multiple=True, metavar="FILE", help="Prices to try it on; repeatable.  [default: the sample]"
)
@click.option(
    "--map", "mapping", type=click.Path(path_type=Path), help="TOML file that maps columns of --history."
)
@click.option(
    "--bars", "num_bars", type=click.IntRange(100, 100_000), default=1_500, show_default=True,
    help="Bars of a series in each trial, the newest of the history.",
)  # fmt: skip
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write the verdict; '-' prints it."
)
@click.option("--by", default="", metavar="NAME", type=PERSON, help="Who proposes it, for the record.")
@key_option
@click.option("--html", "html_file", type=click.Path(path_type=Path), help="Write one page.")
def command(
    candidate: Path,
    champion: Path | None,
    governance: Path | None,
    history: tuple[str, ...],
    mapping: Path | None,
    num_bars: int,
    json_file: Path | None,
    by: str,
    key: Path | None,
    html_file: Path | None,
) -> None:
    """Try CANDIDATE against what serves now, in a process without network, home or secrets.

    CANDIDATE is a model folder, a TOML file of settings or of a policy bundle, or a Python file with one expert. It
    passes where every check holds in every trial; exit status 3 says that it was rejected. Where the governance folder
    has people, --key says who proposes it.
    """
    import msgspec

    from htfi.apps.cli.sandbox.progress import trial_progress
    from htfi.apps.cli.sandbox.text import verdict_lines
    from htfi.apps.cli.scenario.command import write_text
    from htfi.apps.display.tables import print_line
    from htfi.wiring.authorisation import Requester, proposer_of
    from htfi.wiring.sandbox.candidates import open_candidate
    from htfi.wiring.sandbox.examination import examine
    from htfi.wiring.sandbox.history import read_history
    from htfi.wiring.sandbox.promotion import serving

    proposer = proposer_of(Requester(by, governance, key))
    opened = open_candidate(candidate)
    other = serving(open_candidate(champion)) if champion is not None else None
    past = read_history(history, mapping)
    with trial_progress(opened.name) as show:
        found = examine(
            opened,
            past,
            champion=other,
            governance=governance,
            num_bars=num_bars,
            show=show,
            proposed_by=proposer,
        )
    if json_file is not None:
        text = msgspec.json.format(msgspec.json.encode(_answer(found)), indent=1).decode()
        if str(json_file) == "-":
            click.echo(text)
        else:
            write_text(json_file, text + "\n")
    if html_file is not None:
        from htfi.apps.cli.sandbox.page import page

        write_text(html_file, page(found))
    if str(json_file) != "-":
        for line in verdict_lines(found):
            print_line(line)
    for file in (json_file, html_file):
        if file is not None and str(file) != "-":
            click.echo(f"written: {file}", err=True)
    if governance is None:
        click.echo("not recorded, so nothing can be promoted by it: name --governance DIR", err=True)
    if not found.verdict.passed:
        sys.exit(REJECTED)


def _answer(found: "Examination") -> dict[str, object]:
    return {
        "passed": found.verdict.passed,
        "entry": found.record,
        "verdict": found.verdict,
        "enforced": found.enforcement.enforced,
        "not_enforced": found.enforcement.not_enforced,
        "seconds": round(found.seconds, 1),
        "printed": found.printed,
        FIELD: content_marking(is_generated=False),
    }
