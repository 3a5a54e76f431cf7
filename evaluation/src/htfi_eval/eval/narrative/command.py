"""`htfi eval narrative`: what reading news adds to prices alone, on simulated and real markets, with placebos."""

from dataclasses import asdict
from pathlib import Path

import click

from htfi.decoding.config import DecodingConfig
from htfi.domain.errors import InvalidInput
from htfi.narrative.readers import ModelReader
from htfi.wiring.models.config import ModelsConfig
from htfi.wiring.models.readers import open_model_pair
from htfi.wiring.settings import load_settings
from htfi_eval.commands import ProgressLine, data_option, output_options
from htfi_eval.eval.narrative import real_text, report, scores
from htfi_eval.eval.narrative import simulated as narrative_market
from htfi_eval.eval.narrative.moments import PRICE_ONLY
from htfi_eval.eval.narrative.simulated import ideal_meaning, unseen_moments
from htfi_eval.eval.prices import STAGED, data_folder
from htfi_eval.eval.trials import digest_of, record_trial, trials_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED

NUM_WORLDS = 60
NUM_MOMENTS = 1_500

_EPILOG = """\b
Examples:
  htfi eval narrative                           simulated worlds, staged text
  htfi eval narrative --worlds 20 --no-stocknet
  htfi eval narrative --target mine/mini-target --json build/narrative.json
"""


@click.command("narrative", short_help="The gain of reading news over prices alone.", epilog=_EPILOG)
@click.option(
    "--target",
    type=click.Path(path_type=Path),
    help="Folder of the model that reads news.  [default: the shipped one]",
)
@click.option("--worlds", "num_worlds", default=NUM_WORLDS, show_default=True, type=click.IntRange(2))
@click.option(
    "--seed",
    default=FIRST_EVALUATION_SEED,
    show_default=True,
    help="Seed of the worlds; lower seeds are training data.",
)
@click.option(
    "--stocknet/--no-stocknet", default=None, help="StockNet's tweets and daily prices.  [default: if staged]"
)
@click.option("--reuters/--no-reuters", default=False, help="Reuters headlines and the panel of US equities.")
@click.option(
    "--moments", "num_moments", default=NUM_MOMENTS, show_default=True, type=click.IntRange(10),
    help="Symbol-sessions drawn from a set of real text.",
)  # fmt: skip
@data_option
@trials_option
@output_options
def command(
    target: Path | None, num_worlds: int, seed: int, stocknet: bool | None, reuters: bool, num_moments: int,
    data: Path | None, trials: Path, html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Tilt the price forecast by a reader's views, as `htfi run` does, and score it against outcomes.

    Each narrator's views are weighted by its track record. It is compared with prices alone, with readers of other
    words and other news, with a random narrator, and on simulated markets with perfect understanding.
    """
    settings = load_settings()
    config = settings.forecasting
    folder = data_folder(data)
    wanted = [name for name, on in (("stocknet", stocknet), ("reuters", reuters)) if on]
    if folder is None and wanted:
        raise InvalidInput(f"{wanted[0]}: no folder of staged data at {data or STAGED}: name it with --data")
    if stocknet is None and folder is not None:
        wanted.insert(0, "stocknet")
    opened, _ = open_model_pair(ModelsConfig(str(target or "")))
    reader = ModelReader(
        opened.plain_generator(DecodingConfig()), settings.narrative, opened.trust, meaning=opened.meaning
    )
    moments = unseen_moments(seed, num_worlds, config, ProgressLine("worlds"))
    market = narrative_market.judge_narrators(moments, reader, ideal_meaning(), config, seed, ProgressLine)
    rows = report.market_rows(market, config, seed)
    metrics = report.market_metrics(market, seed)
    notes = report.market_notes(market, config)
    charts = report.market_charts(market, config, seed)
    ranked = scores.rank_all(market.views, moments, config)
    plain = market.forecasts[PRICE_ONLY]
    rows += scores.rows(ranked, plain, moments, seed)
    metrics |= scores.metrics(ranked, plain)
    notes.append(scores.note(ranked))
    charts += scores.charts(ranked, plain, moments, seed)
    if opened.meaning is None:
        notes.append(f"{opened.name}: the meaning of its views was never measured (htfi models calibrate)")
    for name in wanted:
        assert folder is not None  # nothing is wanted of a folder that is not there
        found = real_text.judge_real_text(name, folder, reader, config, num_moments, seed, ProgressLine)
        rows += report.real_rows(found, config, seed)
        metrics |= report.real_metrics(found, seed)
        notes += report.real_notes(found)
        charts += report.real_charts(found, config, seed)
    if folder is None:
        notes.append("staged data were not found: real text is left out")
    tried = {
        "forecasting": asdict(config),
        "reader": reader.version,
        "worlds": num_worlds,
        "moments": num_moments,
        "seed": seed,
    }
    num = record_trial("narrative", digest_of(str(seed), wanted), tried, metrics, folder=trials)
    notes.append(f"{num:,} configurations have been evaluated so far, this one included")
    result = Evaluation(
        name="narrative",
        title="The gain of reading news over prices alone",
        lead=report.lead(metrics),
        metrics=dict(metrics),
        cards=report.cards(metrics),
        charts=charts,
        rows=rows,
        notes=notes,
        seed=seed,
    )
    write_outputs(result, json_file=json_file, html_file=html_file)
