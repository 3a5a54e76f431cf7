"""`htfi models wording`: fit the sanitiser's weights again from our own grammars."""

from pathlib import Path

import click

SHIPPED_SEED = 7


@click.command("wording", short_help="Make the sanitiser's weights from the project's own grammars.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File to write.")
@click.option("--seed", default=SHIPPED_SEED, show_default=True, help="Seed of the texts.")
def command(out: Path, seed: int) -> None:
    """Generate instructions to models, pump messages and honest lines, fit a linear model of words, write its weights.

    The same seed gives the same bytes on the same machine. No labelled set is read.
    """
    from htfi.domain.errors import DependencyUnavailable
    from htfi_train.simulation.attacks.fitting import fit_weights

    raw = fit_weights(seed)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(raw)
    except OSError as error:
        raise DependencyUnavailable(f"{out}: cannot be written: {error.strerror}") from error
    click.echo(f"{out}: {len(raw):,} bytes")
