"""`htfi eval portfolio`: risk of books from joint forecasts against peers, and rules corrected for multiple trials."""

from pathlib import Path

import click

from htfi.apps.options import FiniteRange
from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import ForecastConfig
from htfi.wiring.settings import load_settings
from htfi_eval.commands import ProgressLine, data_option, output_options
from htfi_eval.eval.portfolio.charts import risk_charts, rule_charts
from htfi_eval.eval.portfolio.judging import joint_notes, judge, judge_joint, metrics_of, risk_rows
from htfi_eval.eval.portfolio.methods import build_methods
from htfi_eval.eval.portfolio.rules import TRIALS_COMMAND, RuleFamily, judge_family, random_rules, try_rules
from htfi_eval.eval.portfolio.walk import complete_series, make_books, walk_books
from htfi_eval.eval.prices import Prices, data_folder, load_prices
from htfi_eval.eval.trials import digest_of, list_trials, num_configurations, record_trials, trials_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation

SETS = ("us_equities", "fx_daily")
HORIZONS = (1, 5)
NUM_SYMBOLS = 60
COSTS_BPS = 5.0
_YEARS_BEFORE = 2  # of bars, from which dependence is learnt before the first forecast counts

_EPILOG = """\b
Examples:
  htfi eval portfolio                                us_equities and fx_daily
  htfi eval portfolio us_equities --symbols 100 --html build/portfolio.html
  htfi eval portfolio prices.csv --no-rules          bars of your own
"""


@click.command(
    "portfolio", short_help="Risk of books, and chance in trading rules, on real data.", epilog=_EPILOG
)
@click.argument("sets", metavar="[SET|FILE]...", nargs=-1)
@data_option
@click.option(
    "--symbols", "num_symbols", default=NUM_SYMBOLS, show_default=True, type=click.IntRange(1),
    help="Maximum number of symbols of a set, spread evenly over those with all bars.",
)  # fmt: skip
@click.option("--from", "first", help="Backtest from this date on.  [default: two years in]")
@click.option("--to", "last", help="Backtest up to this date.")
@click.option(
    "--costs-bps",
    default=COSTS_BPS,
    show_default=True,
    type=FiniteRange(0),
    help="Trading costs of the rules, per unit traded.",
)
@click.option("--rules/--no-rules", default=True, help="Also evaluate trading rules.")
@trials_option
@click.option("--seed", default=0, show_default=True, help="Seed of the random books and the scenarios.")
@output_options
def command(
    sets: tuple[str, ...], data: Path | None, num_symbols: int, first: str | None, last: str | None, costs_bps: float,
    rules: bool, trials: Path, seed: int, html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Forecast the one- and five-day losses of three books from joint scenarios, and backtest the forecasts.

    The books: equal weights, half long and half short, and three names. The peers: historical simulation over 250
    days, RiskMetrics, our own forecasts without dependence, and with a t copula in place of past dependence. The tests:
    Kupiec, Christoffersen, Acerbi and Szekely (critical values simulated from each forecast), and the traffic light;
    energy and variogram scores judge the joint distribution. Then a family of trading rules is tried with every
    parameter: Sharpe ratios after costs, deflated by the number of configurations ever tried, and the probability of
    overfitting. Every configuration is recorded in the ledger of trials.
    """
    notes: list[str] = []
    if not sets and data is None and data_folder() is None:
        notes.append("staged data were not found: these figures are of the small embedded sample")
        sets = ("sample",)
    result = Evaluation(
        name="portfolio", title="Risk of books, and luck of trading rules", metrics={}, notes=notes, seed=seed
    )
    config = load_settings().forecasting
    for name in sets or SETS:
        prices = load_prices(name, data).cut(None, None, last)
        _judge_risk_forecasts(result, prices, num_symbols, first, config, trials, seed)
        if rules:
            _judge_rules(result, prices, num_symbols, first, costs_bps, trials, seed)
    result.lead = _lead(result)
    result.cards = _cards(result)
    write_outputs(result, json_file=json_file, html_file=html_file)


def _judge_risk_forecasts(
    result: Evaluation, prices: Prices, num_symbols: int, first: str | None, config: ForecastConfig, trials: Path,
    seed: int,
) -> None:  # fmt: skip
    begin = _first_scored_instant(prices, first)
    chosen = complete_series(prices, num_symbols, begin)
    books = make_books(len(chosen.symbols), seed)
    horizons = [h for h in HORIZONS if h in config.horizons] or [config.horizons[0]]
    walked = walk_books(
        chosen, books, build_methods(seed), config, horizons, begin, ProgressLine(f"{prices.name}, risk")
    )
    tested = judge(walked, seed)
    joint = judge_joint(walked)
    figures = metrics_of(walked, tested, joint)
    main = not result.metrics
    result.metrics.update(
        figures if main else {f"{prices.name}_{key}": value for key, value in figures.items()}
    )
    result.rows += risk_rows(walked, tested)
    result.charts += risk_charts(walked, tested)
    result.notes += [
        *joint_notes(walked, joint),
        *prices.notes,
        f"{prices.name}: {len(chosen.symbols)} series with all their bars, {len(walked.days[0]):,} days from "
        f"{chosen.dates()[int(walked.days[0][0])]} on, held at the same weights every day; a missing bar counts "
        "as no move; horizons above a day are tested on days that do not overlap",
        "p below .05 is an alarm; each of four tests raises a false one for 5% of correct forecasts, so a "
        "correct method "
        "passes all of them in 81 to 95% of cases",
    ]
    data = digest_of(list(chosen.symbols), chosen.ends_ns, chosen.close)
    record_trials(
        "portfolio",
        data,
        [
            (
                {"method": method, "horizons": horizons, "seed": seed, "first": chosen.dates()[begin]},
                {
                    f"missed{one.level:.0%}, {one.book}": one.missed
                    for one in tested
                    if one.method == method and one.horizon == horizons[0]
                },
            )
            for method in walked.methods
        ],
        folder=trials,
    )


def _judge_rules(
    evaluation: Evaluation,
    prices: Prices,
    num_symbols: int,
    first: str | None,
    costs_bps: float,
    trials: Path,
    seed: int,
) -> None:
    begin = _first_scored_instant(prices, first)
    chosen = complete_series(prices, num_symbols, begin)
    try:
        results = try_rules(chosen, begin, costs_bps)
    except InvalidInput as error:
        evaluation.notes.append(f"rules are left out: {error}")
        return
    data = digest_of(list(chosen.symbols), chosen.ends_ns, chosen.close, chosen.open)
    record_trials(
        TRIALS_COMMAND,
        data,
        [(result.settings, {"sharpe a year": result.annual_sharpe}) for result in results],
        folder=trials,
    )
    ever = num_configurations(trial for trial in list_trials(trials) if trial.command == TRIALS_COMMAND)
    family = judge_family(results, ever)
    coins = judge_family(random_rules(chosen, begin, costs_bps, seed), 0)
    dates = chosen.dates()
    evaluation.charts += rule_charts(family, coins, prices.name, dates[:-1])
    at = "" if "best_sharpe" not in evaluation.metrics else f"{prices.name}_"
    significant = sum(family.deflated(result) >= 0.95 for result in family.results)
    evaluation.metrics.update({
        f"{at}best_sharpe": family.best.annual_sharpe,
        f"{at}best_probabilistic": family.probabilistic(family.best),
        f"{at}best_deflated": family.deflated(family.best),
        f"{at}pbo": family.overfitting.probability,
        f"{at}num_trials": float(family.num_trials),
        f"{at}num_rules_beyond_luck": float(significant),
    })  # fmt: skip
    looking = sum(family.probabilistic(result) >= 0.95 for result in family.results)
    evaluation.notes += [
        f"{prices.name}, rules: {looking} of {len(results)} have a positive Sharpe ratio at 95% on their own, "
        f"{significant} do once {family.num_trials} trials are counted; random rules are a control and not "
        "counted as trials",
        _of_family(prices.name, "rules", family),
        _of_family(prices.name, "random rules", coins),
    ]


def _of_family(name: str, kind: str, family: RuleFamily) -> str:
    best = family.best
    return (
        f"{name}, best of the {kind}: {best.name} (look back/rebalance, days), Sharpe ratio "
        f"{best.annual_sharpe:.2f} per "
        f"year, {family.expected_max_annual_sharpe():.2f} expected by luck; probability of a positive ratio "
        f"{family.probabilistic(best):.2f} alone, {family.deflated(best):.2f} deflated by {family.num_trials} "
        f"trials; probability of overfitting {family.overfitting.probability:.2f}"
    )


def _first_scored_instant(prices: Prices, first: str | None) -> int:
    """The first instant that counts: `first`, or two years in, or half-way where there are fewer than four."""
    num = len(prices.ends_ns)
    if first is None:
        return min(_YEARS_BEFORE * 252, num // 2)
    begin = num - len(prices.cut(None, first).ends_ns)
    if begin >= num:
        raise InvalidInput(f"{prices.name} has no bars from {first} on: it ends on {prices.dates()[-1]}")
    return begin


def _lead(result: Evaluation) -> str:
    metrics = result.metrics
    labels = (
        f"{metrics[f'var_passes_{key}'] or 0.0:.0%} {label}"
        for key, label in (
            ("joint_scenarios", "of cases with joint scenarios"),
            ("historical_250", "with historical simulation"),
            ("riskmetrics", "with RiskMetrics"),
            ("independent", "with independent series"),
        )
    )
    text = f"Value at risk passes Kupiec's and Christoffersen's tests in {', '.join(labels)}."
    if metrics.get("pbo") is not None:
        text += (
            f" The best of the trading rules has a Sharpe ratio of {metrics['best_sharpe']:.2f} per year; the "
            "probability "
            f"that it is more than luck is {metrics['best_deflated']:.2f}."
        )
    return text


def _cards(result: Evaluation) -> list[Card]:
    cards: list[Card] = []
    for key, label, form in (
        ("var_passes_joint_scenarios", "of cases pass the value-at-risk tests, joint scenarios", "{:.0%}"),
        ("var_passes_historical_250", "historical simulation", "{:.0%}"),
        ("var_passes_riskmetrics", "RiskMetrics", "{:.0%}"),
        ("passes_joint_scenarios", "also pass the shortfall tests, joint scenarios", "{:.0%}"),
        ("passes_historical_250", "historical simulation", "{:.0%}"),
        ("best_sharpe", "Sharpe ratio of the best rule", "{:.2f}"),
        ("best_deflated", "probability that it is more than luck", "{:.2f}"),
        ("pbo", "probability of overfitting", "{:.2f}"),
    ):
        value = result.metrics.get(key)
        if value is not None:
            cards.append(Card(form.format(value), label))
    return cards
