"""`htfi models fit`: a learner over all series, fitted to bars walk-forward and judged out of sample."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click
import msgspec

from htfi.domain.events import Bar
from htfi.forecasting.experts.pooled.features import FEATURES
from htfi.forecasting.experts.pooled.models import FORMAT, EncodedModels, decode_models, write_models
from htfi.forecasting.ports import ReturnModel
from htfi.wiring.experts import open_foundation_model
from htfi.wiring.settings import load_settings
from htfi_eval.commands import ProgressLine, data_option, output_options, seed_option
from htfi_eval.eval.pooled.comparison import WITHOUT, PooledComparison, compare, metrics_of, rows_of
from htfi_eval.eval.prices import Prices, load_prices
from htfi_eval.eval.returns.command import spread_sample, with_settings
from htfi_eval.eval.trials import digest_of, record_trial, trials_option
from htfi_eval.eval.walk import FUSED
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation
from htfi_train.pooled.boosting import BoostingConfig
from htfi_train.pooled.samples import collect_samples, merge_samples
from htfi_train.pooled.walk_forward import EMBARGO_DAYS, DatedFit, fit_by_year

_EPILOG = """\b
Examples:
  htfi models fit prices.csv --out mine             your bars, CSV or Parquet
  htfi models fit etf fx_daily --out mine --symbols 40   staged sets
  htfi run prices.csv --settings run.toml           with pooled = "mine"
"""


@click.command("fit", short_help="Fit the pooled learner to your bars, walk-forward.", epilog=_EPILOG)
@click.argument("prices", metavar="PRICES...", nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to write."
)
@data_option
@click.option(
    "--symbols",
    "num_symbols",
    type=click.IntRange(1),
    help="Maximum number of symbols of a file, spread evenly.",
)
@click.option("--from", "first_year", type=click.IntRange(1900, 2200), help="First year that is judged.")
@click.option(
    "--embargo",
    "embargo_days",
    type=click.IntRange(0, 3650),
    default=EMBARGO_DAYS,
    show_default=True,
    help="Days between the last outcome that a fit knows and its first forecast.",
)
@click.option(
    "--trees", type=click.IntRange(0, 2000), default=BoostingConfig().max_trees, show_default=True,
    help="Maximum number of trees.",
)  # fmt: skip
@click.option(
    "--foundation",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of a Chronos model to compare with, at a sample of forecasts.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of [forecasting]; repeatable."
)
@click.option("--no-comparison", is_flag=True, help="Fit only; compare nothing.")
@trials_option
@seed_option(0, "the rows and mixtures that trees are grown on")
@output_options
def command(
    prices: tuple[str, ...], out: Path, data: Path | None, num_symbols: int | None, first_year: int | None,
    embargo_days: int, trees: int, foundation: Path | None, settings: tuple[str, ...], no_comparison: bool,
    trials: Path, seed: int, html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Fit one model over all series of PRICES, year by year, and compare it out of sample with the experts that stand.

    PRICES are files of bars as `htfi run` reads them, or staged sets. The fit for a year knows only outcomes known
    before that year, less an embargo; a last one is on everything. All are written to OUT/pooled.json, each with the
    date from which it may forecast. A run uses them with forecasting.experts naming 'pooled' and forecasting.pooled =
    OUT. Differences are tested by Diebold-Mariano on means by date, with errors that allow for overlap.
    """
    config = with_settings(load_settings(), settings).forecasting
    boosting = BoostingConfig(max_trees=trees)
    model = _open_foundation(foundation)
    sets = [_load(name, data, num_symbols) for name in prices]
    samples = merge_samples([collect_samples(_instants(one), config) for one in sets])
    fits = fit_by_year(samples, config.horizons, boosting, seed, first_year, embargo_days, ProgressLine)
    encoded = msgspec.json.encode(
        EncodedModels(
            format=FORMAT,
            horizons=list(config.horizons),
            features=list(FEATURES),
            fitted_to=[f"{one.name}: {len(one.symbols)} series" for one in sets],
            models=[fit.encoded() for fit in fits],
        )
    )
    write_models(out, encoded)
    models = decode_models(encoded, config.horizons, str(out))
    compared: list[PooledComparison] = []
    notes = [note for one in sets for note in one.notes]
    notes += [f"{out}: digest {models.digest}", *(_sentence(fit) for fit in fits)]
    if not no_comparison and len(fits) > 1:
        compared = [compare(one, config, models, model, seed) for one in sets]
    elif not no_comparison:
        notes.append("nothing was compared: no year has enough before it to be fitted")
    metrics = metrics_of(compared)
    chosen = {
        "forecasting": {**asdict(config), "pooled": "", "foundation": foundation.name if foundation else ""},
        "boosting": asdict(boosting), "embargo_days": embargo_days, "from": first_year or 0, "seed": seed,
    }  # fmt: skip
    digest = digest_of(*(part for one in sets for part in (list(one.symbols), one.ends_ns, one.close)))
    scores = {key: value for key, value in metrics.items() if value is not None}
    num = record_trial("models fit", digest, chosen, scores, folder=trials)
    notes.append(f"{num:,} configurations have been evaluated so far, this one included")
    evaluation = Evaluation(
        name="fit",
        kind="models",
        title="The pooled learner",
        lead=_lead(compared),
        metrics=metrics,
        rows=[row for one in compared for row in rows_of(one)],
        notes=notes,
        seed=seed,
    )
    write_outputs(evaluation, json_file=json_file, html_file=html_file)


def _load(name: str, data: Path | None, num_symbols: int | None) -> Prices:
    found = load_prices(name, data)
    return found if num_symbols is None else spread_sample(found, num_symbols)


def _instants(prices: Prices) -> Iterator[Sequence[Bar]]:
    return (prices.bars(t) for t in range(len(prices.ends_ns)))


def _open_foundation(folder: Path | None) -> ReturnModel | None:
    return None if folder is None else open_foundation_model(folder)


def _sentence(dated: DatedFit) -> str:
    fit = dated.fit
    what = f"fit for {dated.year}" if dated.year else "newest fit"
    if not fit.is_used:
        return f"{what}: did not converge on {dated.num_samples:,} forecasts: it corrects nothing"
    straight, boosted = (float((held / fit.plain).mean()) for held in (fit.linear, fit.boosted))
    return (
        f"{what}: {dated.num_samples:,} forecasts, {len(fit.trees.features)} trees; on its newest fifth CRPS "
        f"{straight:.4f} of that without corrections by linear terms, {boosted:.4f} with trees"
    )


def _lead(compared: Sequence[PooledComparison]) -> str:
    found: list[str] = []
    for one in compared:
        ratios = [one.difference(FUSED, WITHOUT, j)[0] for j in range(len(one.scores.horizons))]
        found.append(f"{one.scores.prices.name} " + " / ".join(f"{ratio:.4f}" for ratio in ratios))
    if not found:
        return ""
    return f"CRPS of the fused forecast with the pooled learner over that without it, by horizon: {'; '.join(found)}."
