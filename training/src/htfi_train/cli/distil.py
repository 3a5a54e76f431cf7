"""`htfi models distil`: train the draft on the target's recent answers, promote it if better."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from htfi import models
from htfi.apps.options import FiniteRange

if TYPE_CHECKING:
    from htfi_train.distillation import DistillationResult

NOT_PROMOTED, STOPPED = 3, 130  # 130: what a shell reports for a program that Ctrl-C ended


@click.command("distil", short_help="Train the draft on recent answers of its target.")
@click.option(
    "--from", "buffer", type=click.Path(path_type=Path), required=True, help="Folder of a replay buffer."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of promoted drafts.")
@click.option(
    "--target",
    type=click.Path(path_type=Path),
    help="The target that gave the answers (default: the shipped one).",
)
@click.option(
    "--draft",
    type=click.Path(path_type=Path),
    help="Draft to start from (default: promoted in OUT, else shipped).",
)
@click.option("--minutes", type=FiniteRange(min=0, min_open=True), help="Budget of time (default: 10).")
@click.option("--tokens", type=click.IntRange(min=1), help="Budget of tokens instead: reproduces exactly.")
@click.option("--seed", type=click.IntRange(min=0, max=800_000_000), default=0, show_default=True)
@click.option("--rate", type=FiniteRange(min=0, min_open=True), help="Peak learning rate (default: 0.0003).")
@click.option(
    "--rehearsal",
    type=FiniteRange(min=0, max=1, max_open=True),
    help="Share of simulated stories in training.",
)
@click.option("--device", help="cpu, cuda, or auto (default: cpu).")
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Threads on a CPU (default: 1, which leaves cores to a service).",
)
@click.option(
    "--precision", type=click.Choice(("int8", "int8-wide", "fp32")), default="int8", show_default=True
)
def command(
    buffer: Path, out: Path, target: Path | None, draft: Path | None, precision: str, **options: object
) -> None:
    """Train the draft on recent answers of its target; needs the extra [train].

    A fifth of the questions in the buffer is held back. The new draft is promoted only if it agrees with the target
    more often on these, by more than the error of the difference, and no less often on simulated ones. A service
    that follows OUT switches to it between two requests.

    Exit status 0 if a draft was promoted, 3 if the old one stays, 130 after Ctrl-C.

    \b
    Examples:
      htfi models distil --from recent --out drafts   ten minutes on one core
      htfi models distil --from recent --out drafts --tokens 2000000
      htfi models distil --from recent --out drafts --draft mine/mini-draft
    """
    from htfi.decoding.promotion import read_promoted
    from htfi.wiring.models.config import ModelsConfig
    from htfi_train.distillation import distil_draft, parse_distil_config

    if draft is None:
        promoted = read_promoted(out)
        draft = out / promoted.folder if promoted is not None else models.DRAFT
    pair = ModelsConfig(str(target or models.TARGET), str(draft), precision=precision)
    done = distil_draft(
        parse_distil_config(**options), buffer, pair, out, lambda line: click.echo(line, err=True)
    )
    if not done.finished:
        click.echo(done.reason, err=True)
        raise SystemExit(STOPPED)
    _show(done)
    if done.folder is None:
        click.echo(f"not promoted, {draft} stays: {done.reason}")
        raise SystemExit(NOT_PROMOTED)
    click.echo(f"promoted: {done.folder}")


def _show(done: "DistillationResult") -> None:
    from htfi.apps.display.tables import print_table

    rows: list[tuple[str, ...]] = []
    for row in done.rows:
        found = row.change
        rows.append((
            row.questions,
            row.field or "all",
            f"{found.num_places:,}",
            f"{found.before:.4f}",
            f"{found.after:.4f}",
            f"{found.gain:+.4f}",
            f"{found.error:.4f}",
        ))  # fmt: skip
    print_table(
        ("questions", "what", "places", "before", "after", "change", "± error"),
        rows,
        title="Agreement with the target under the same noise: share of free tokens",
    )
