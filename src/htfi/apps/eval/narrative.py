"""`htfi eval narrative`: what reading news adds to prices alone, on simulated and real markets, with placebos."""

import time
from pathlib import Path
from typing import Any

import click

from htfi.simulation.stories import FIRST_EVALUATION_SEED

NUM_WORLDS = 60

_EPILOG = """\b
Examples:
  htfi eval narrative                           simulated worlds, and StockNet where it is staged
  htfi eval narrative --worlds 20 --no-stocknet
  htfi eval narrative --target mine/mini-target --json build/narrative.json
"""


@click.command("narrative", short_help="What reading the news adds to prices alone.", epilog=_EPILOG)
@click.option(
    "--target",
    type=click.Path(path_type=Path),
    help="Folder of the model that reads.  [default: the shipped one]",
)
@click.option("--worlds", "num_worlds", default=NUM_WORLDS, show_default=True, type=click.IntRange(2))
@click.option(
    "--seed",
    default=FIRST_EVALUATION_SEED,
    show_default=True,
    help="Of the worlds; training has those below.",
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to FILE."
)
def command(target: Path | None, num_worlds: int, seed: int, json_file: Path | None) -> None:
    """Tilt the forecast of prices by a reader's views, as `htfi run` does, and score it by what came.

    Every narrator's views count for what its past ones have earned; it stands beside prices alone, others' words
    and others' news, a narrator that guesses, and on simulated markets one who understands everything.
    """
    from htfi.apps.eval import narrative_market, narrative_table
    from htfi.apps.eval.narrative_worlds import ideal_meaning, unseen_moments
    from htfi.decoding.config import DecodingConfig
    from htfi.narrative.model_reader import ModelReader
    from htfi.wiring.figures import report
    from htfi.wiring.models import ModelsConfig, open_pair
    from htfi.wiring.settings import load_settings

    settings = load_settings()
    opened, _ = open_pair(ModelsConfig(str(target or "")))
    reader = ModelReader(opened.author(DecodingConfig()), settings.narrative, opened.trust)
    moments = unseen_moments(seed, num_worlds, settings.forecasting, _stage("worlds"))
    market = narrative_market.judge(
        moments, reader, opened.meaning, ideal_meaning(), settings.forecasting, seed, _stage
    )
    rows: list[dict[str, Any]] = narrative_table.market_rows(market, settings.forecasting, seed)
    metrics = narrative_table.market_metrics(market, seed)
    report("narrative", metrics, rows, seed=seed, json_file=json_file, kind="eval")


class _stage:  # noqa: N801 - called like a function
    """Tells on stderr how far a stage is, at most every five seconds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began_s = self._told_s = time.monotonic()
        click.echo(f"{name} …", err=True)

    def __call__(self, done: int, num: int) -> None:
        now_s = time.monotonic()
        if done >= num or now_s - self._told_s >= 5.0:
            self._told_s = now_s
            click.echo(f"{self._name}: {done:,} of {num:,}, {now_s - self._began_s:.1f} s", err=True)
