"""`htfi models heads`: fit the heads on the encoder again from the corpora."""

from pathlib import Path

import click

from htfi_train.cli.options import corpora_option, out_option

_LETTERS = {"+": "g", "0": "n", "-": "b"}  # of tones, in the corpus of sentiment
_EPILOG = """\b
Examples:
  htfi models heads --out mine/heads   from the folder 'corpora'
  htfi models heads --out mine/heads --corpora my/corpora  your templates
"""


@click.command("heads", short_help="Make the sentiment and other heads from the corpora.", epilog=_EPILOG)
@out_option
@corpora_option("Folder of labelled templates.")
def command(out: Path, corpora: Path) -> None:
    """Draw labelled lines from templates, encode them, fit a head per corpus, and write weights and card.

    Lines, encoder and seed are fixed, so the same corpora give the same bytes on the same machine; an equal digest
    shows it. A fifth of the templates is held back first, to calibrate the probabilities and to judge; for sentiment,
    whose templates the encoder was tuned with, lines of 'facts' that it was not.
    """
    from htfi.apps.display.tables import print_table
    from htfi.narrative.config import EncodingConfig
    from htfi.wiring.encoder import shipped_encoder
    from htfi_train.facts.lines import read_lines
    from htfi_train.simulation.head_training import make_heads, read_corpora

    found = read_corpora(corpora)
    encoder = shipped_encoder(EncodingConfig())
    unseen: dict[str, list[tuple[str, str]]] = {}
    if (corpora / "facts").is_dir():  # the encoder was tuned with lines of the templates of sentiment
        held = [one for one in read_lines(corpora / "facts") if one.is_held_back]
        unseen["sentiment"] = [(one.text, _LETTERS[one.tone]) for one in held]
    digest, judged = make_heads(found, encoder, out, lambda line: click.echo(line, err=True), unseen)
    columns = ("head", "lines", "held back", "macro-F1", "calibration error", "temperature")
    rows = [
        (
            one.head,
            f"{one.num_lines:,}",
            f"{one.num_held_back:,}",
            f"{one.macro_f1:.3f}",
            f"{one.calibration_error:.3f}",
            f"{one.temperature:.2f}",
        )
        for one in judged
    ]
    title = "Heads, on held-out templates"
    print_table(columns, rows, title=title, notes=(f"{out}: digest {digest}",))
