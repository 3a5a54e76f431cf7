"""`htfi models facts`: tune the encoder for facts on the labelled lines, and pack it."""

from pathlib import Path

import click

from htfi.apps.options import FiniteRange
from htfi_train.cli.options import LINES, corpora_option, out_option

_EPILOG = """\b
Examples:
  htfi models facts --base minilm --out mine/facts    from 'corpora'
  htfi models facts --base minilm --out mine/facts --epochs 8
"""


@click.command("facts", short_help="Tune the encoder that reads the facts of news.", epilog=_EPILOG)
@click.option(
    "--base",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder of the BERT encoder to begin from, with full weights.",
)
@out_option
@corpora_option(LINES)
@click.option(
    "--epochs", type=click.IntRange(1, 100), default=5, show_default=True, help="Passes over the lines."
)
@click.option(
    "--mean-with",
    type=(click.Path(path_type=Path, file_okay=False), FiniteRange(min=0.0, max=1.0)),
    metavar="FOLDER SHARE",
    help="Another training, and its share in the mean of both weights that is packed.",
)
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True, help="Threads.")
def command(
    base: Path, out: Path, corpora: Path, epochs: int, mean_with: tuple[Path, float] | None, threads: int
) -> None:
    """Tune an encoder with heads for the kind of event, tone, axis, modality, tense and parties, and pack it in int8.

    One line in twelve is held back, to calibrate and to judge. Each epoch is saved; the same command continues.
    """
    from htfi.decoding.checkpoint.folder import ModelFolder
    from htfi.domain.errors import MissingExtra
    from htfi.wiring.encoder import pack_encoder
    from htfi_train.facts.lines import read_lines
    from htfi_train.simulation.head_training import SEED, read_corpora
    from htfi_train.simulation.labelled_lines import draw_lines

    try:
        from htfi_train.torch.facts import FactTrainer, FactTrainingConfig
    except ModuleNotFoundError as error:
        raise MissingExtra("`htfi models facts` needs torch: pip install 'htfi[train]'") from error
    lines = read_lines(corpora / "facts")
    tones: list[tuple[str, str]] = []
    for corpus in read_corpora(corpora):
        if corpus.head == "sentiment":
            side = {"g": "+", "b": "-", "n": "0"}
            drawn = draw_lines(corpus.templates, corpus.slots, _LINES_PER_TEMPLATE, SEED)
            tones = [(line.text, side[line.label]) for line in drawn]
    config = FactTrainingConfig(epochs=epochs, threads=threads)
    trainer = FactTrainer(
        ModelFolder.open(base), lines, tones, config, out, lambda line: click.echo(line, err=True)
    )
    trainer.train()
    if mean_with is not None:
        trainer.average_with(*mean_with)
    card = {"licence": "Apache-2.0", "seed": config.seed, "epochs": epochs, "tone_lines": len(tones)}
    heads = trainer.finish(card)
    packed = pack_encoder(out / "encoder", out / "packed")
    digest = heads.save(out / "packed")
    click.echo(f"{out / 'packed'}: encoder {packed}, heads {digest}")


_LINES_PER_TEMPLATE = 3
