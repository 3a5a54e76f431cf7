"""`htfi models shorten`: train an encoder of few layers to follow a long one, and pack it."""

from pathlib import Path

import click

from htfi.apps.options import FiniteRange
from htfi_train.cli.options import LINES, corpora_option, out_option

_EPILOG = """\b
Examples:
  htfi models shorten --long mine/facts/packed --out mine/short
  htfi models shorten --long mine/packed --out mine/short --layers 0,2,3,5
"""


def _layers(_: click.Context, __: click.Parameter, value: str) -> tuple[int, ...]:
    parts = value.split(",")
    if not all(part.strip().isdigit() for part in parts):
        raise click.BadParameter("name layers from 0 on with commas between them, as in 1,3,5")
    return tuple(int(part) for part in parts)


@click.command("shorten", short_help="Train a shorter encoder that reads the facts of news.", epilog=_EPILOG)
@click.option(
    "--long",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder 'packed' of `htfi models facts`: what the short encoder follows.",
)
@click.option(
    "--begin",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of a packed encoder whose layers the short one begins as.  [default: the long one]",
)
@out_option
@corpora_option(LINES)
@click.option(
    "--layers",
    default="1,3,5",
    show_default=True,
    callback=_layers,
    help="Layers that the short encoder begins as, from 0 on.",
)
@click.option(
    "--epochs", type=click.IntRange(1, 100), default=5, show_default=True, help="Passes over the texts."
)
@click.option(
    "--rate", type=FiniteRange(min=1e-6, max=1e-2), default=5e-4, show_default=True, help="Of learning."
)
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True, help="Threads.")
def command(
    long: Path,
    begin: Path | None,
    out: Path,
    corpora: Path,
    layers: tuple[int, ...],
    epochs: int,
    rate: float,
    threads: int,
) -> None:
    """Train an encoder of some layers of a long one with heads of facts to say the same, and pack it in int8.

    It learns from what the long encoder says of the project's own lines, of which labels are not used; one line in
    twelve is held back. Words and places are those of the long encoder. Each epoch is saved; the same command
    continues. `htfi models heads` trains the other heads, once the encoder is the shipped one.
    """
    from htfi.domain.errors import MissingExtra
    from htfi.narrative.config import EncodingConfig
    from htfi.wiring.encoder import files_digest, pack_encoder, packed_encoder

    try:
        from htfi_train.torch.shortening import ShorteningConfig, shorten
    except ModuleNotFoundError as error:
        raise MissingExtra("`htfi models shorten` needs torch: pip install 'htfi[train]'") from error
    config = ShorteningConfig(layers=layers, epochs=epochs, rate=rate, threads=threads)
    encoder = packed_encoder(long, "long", files_digest(long), EncodingConfig(threads=threads))
    folder, heads = shorten(
        encoder, long, begin or long, corpora, config, out, lambda line: click.echo(line, err=True)
    )
    packed = pack_encoder(folder, out / "packed")
    digest = heads.save(out / "packed")
    click.echo(f"{out / 'packed'}: encoder {packed}, heads {digest}")
