"""`htfi models shorten`: train an encoder of few layers to follow the shipped one, and pack it."""

from pathlib import Path

import click

from htfi.apps.options import FiniteRange
from htfi_train.cli.options import LINES, corpora_option, out_option

_EPILOG = """\b
Examples:
  htfi models shorten --out mine/passages            as the shipped one
  htfi models shorten --out mine --layers 0,2,3,5    four layers
"""


def _layers(_: click.Context, __: click.Parameter, value: str) -> tuple[int, ...]:
    parts = value.split(",")
    if not all(part.strip().isdigit() for part in parts):
        raise click.BadParameter("name layers from 0 on with commas between them, as in 1,3,5")
    return tuple(int(part) for part in parts)


@click.command("shorten", short_help="Train a shorter encoder for passages of news.", epilog=_EPILOG)
@out_option
@corpora_option(LINES)
@click.option(
    "--layers",
    default="1,3,5",
    show_default=True,
    callback=_layers,
    help="Layers of the shipped encoder that the shorter one begins as.",
)
@click.option(
    "--epochs", type=click.IntRange(1, 100), default=5, show_default=True, help="Passes over the texts."
)
@click.option(
    "--rate", type=FiniteRange(min=1e-6, max=1e-2), default=5e-4, show_default=True, help="Of learning."
)
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True, help="Threads.")
def command(
    out: Path, corpora: Path, layers: tuple[int, ...], epochs: int, rate: float, threads: int
) -> None:
    """Train an encoder of some layers of the shipped one to give the same states, and pack it in int8.

    It learns from what the shipped encoder says of the project's own lines, of which labels are not used; one line in
    twelve is held back. Words, places and heads are those of the shipped encoder. Each epoch is saved; the same command
    continues.
    """
    from htfi.domain.errors import MissingExtra
    from htfi.narrative.config import EncodingConfig
    from htfi.wiring.encoder import pack_short_encoder, shipped_encoder

    try:
        from htfi_train.torch.shortening import ShorteningConfig, shorten
    except ModuleNotFoundError as error:
        raise MissingExtra("`htfi models shorten` needs torch: pip install 'htfi[train]'") from error
    config = ShorteningConfig(layers=layers, epochs=epochs, rate=rate, threads=threads)
    encoder = shipped_encoder(EncodingConfig(threads=threads))
    folder = shorten(encoder, corpora, config, out, lambda line: click.echo(line, err=True))
    digest = pack_short_encoder(folder, encoder, out / "packed")
    click.echo(f"{out / 'packed'}: encoder {digest}")
