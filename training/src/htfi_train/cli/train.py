"""`htfi models train`: train a target and its draft on simulated stories."""

from pathlib import Path

import click

from htfi.apps.options import FiniteRange


@click.command("train")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for both models, the log and the checkpoint.",
)
@click.option("--minutes", type=FiniteRange(min=0, min_open=True), help="Budget of time (default: 60).")
@click.option("--tokens", type=click.IntRange(min=1), help="Budget of tokens instead: reproduces exactly.")
@click.option("--seed", type=click.IntRange(min=0, max=800_000_000), default=0, show_default=True)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, or auto.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads on a CPU (default: all cores).")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes that generate stories.",
)
@click.option(
    "--tokenizer",
    type=click.Path(path_type=Path),
    help="tokenizer.json to use (default: a new one is trained).",
)
@click.option(
    "--from",
    "start_from",
    type=click.Path(path_type=Path),
    help="Folder with mini-target and mini-draft to go on from; they learn the marks of facts too.",
)
@click.option(
    "--corpora",
    type=click.Path(path_type=Path),
    help="Folder of the corpora: labelled lines in its folder 'facts' word some stories.",
)
@click.option("--target-rate", type=FiniteRange(min=0, min_open=True), help="Peak learning rate.")
@click.option("--draft-rate", type=FiniteRange(min=0, min_open=True), help="The same of the draft.")
def command(
    out: Path, tokenizer: Path | None, start_from: Path | None, corpora: Path | None, **options: object
) -> None:
    """Train a target and its draft on simulated stories; needs the extra [train].

    After Ctrl-C or a crash, run the same command again to resume.
    """
    from htfi_train.trainer import parse_training_config, train_models

    if not train_models(
        parse_training_config(**options),
        out,
        tokenizer_file=tokenizer,
        start_from=start_from,
        corpora=corpora,
    ):
        raise SystemExit(130)  # what a shell reports for a program that Ctrl-C ended
