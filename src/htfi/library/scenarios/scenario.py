"""`htfi.scenario`: what moves, headlines and past crises would do to a book; `htfi scenario` prints the same."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from html import escape
from pathlib import Path
from typing import Any, cast

from htfi.domain.errors import InvalidInput
from htfi.forecasting.scenarios.measures import LEVELS
from htfi.forecasting.scenarios.positions import Positions, equal_positions, read_positions
from htfi.forecasting.scenarios.requests import ScenarioKind, ScenarioRequest, check_requests
from htfi.forecasting.scenarios.stresses import is_tradable_symbol
from htfi.library.arguments import Models, bar_interval, real_number, symbols_asked, whole_number, with_models
from htfi.library.backtest import Backtest
from htfi.library.forecast import ForecastResult, forecast
from htfi.library.frames import Frame, FrameKind, make_frame, read_columns
from htfi.library.html import block, table_html
from htfi.library.progress import progress_bar
from htfi.library.scenarios.figures import scenario_json
from htfi.pipeline.scenarios.answers import answer_scenarios, forecast_today
from htfi.pipeline.scenarios.basis import ScenarioBasis
from htfi.pipeline.scenarios.reading import forecast_now
from htfi.wiring.scenario import open_basis, read_table
from htfi.wiring.settings import load_settings

Asked = str | Sequence[str] | None
_MEDIAN, _LOW, _HIGH = LEVELS.index(0.5), LEVELS.index(0.05), LEVELS.index(0.95)


@dataclass(frozen=True, slots=True, repr=False)
class ScenarioResult:
    """Scenarios beside the unchanged forecast. `figures` are all of them, as `htfi scenario --json` writes them.

    Examples:
        >>> import pandas as pd
        >>> import htfi, htfi.sample
        >>> prices = pd.read_parquet(htfi.sample.FILES[0]).tail(60)
        >>> what_if = htfi.scenario(htfi.forecast(prices, symbol="SPX"), shock=["SPX -5%", "SPX +5%"])
        >>> what_if.table[["scenario", "then median"]].round(2).values.tolist()
        [['SPX -5%', -0.05], ['SPX +5%', 0.05]]
        >>> len(what_if.words)
        2
    """

    figures: Mapping[str, Any]
    kind: FrameKind

    @property
    def table(self) -> Frame:
        """A row for each scenario and series: its returns today and then (5%, median, 95%), and what it earns."""
        today = self.figures["positions"]
        rows = [
            (scenario["name"], before, after)
            for scenario in self.figures["scenarios"]
            for before, after in zip(
                today, scenario.get("at_full_weight", scenario)["positions"], strict=True
            )
        ]
        places = {"5%": _LOW, "median": _MEDIAN, "95%": _HIGH}
        return make_frame(
            {
                "scenario": [name for name, _, _ in rows],
                "series": [before["series"] for _, before, _ in rows],
                "holding": [before["holding"] for _, before, _ in rows],
                "reached": [after["way"] for _, _, after in rows],
                **{
                    f"today {name}": [before["quantiles"][k] for _, before, _ in rows]
                    for name, k in places.items()
                },
                **{
                    f"then {name}": [after["quantiles"][k] for _, _, after in rows]
                    for name, k in places.items()
                },
                "profit": [after["mean_profit"] - before["mean_profit"] for _, before, after in rows],
            },
            self.kind,
        )

    @property
    def book(self) -> Frame:
        """A row for today's forecast and for each scenario: mean, VaR and expected shortfall of the book."""
        books = [("today", self.figures["book"])]
        books += [
            (scenario["name"], scenario.get("at_full_weight", scenario)["book"])
            for scenario in self.figures["scenarios"]
        ]
        names = [name for name in self.figures["scenarios"][0]["book"] if name != "quantiles"]
        return make_frame(
            {
                "scenario": [name for name, _ in books],
                **{key: [book[key] for _, book in books] for key in names},
            },
            self.kind,
        )

    @property
    def words(self) -> tuple[str, ...]:
        """Why each scenario's figures are what they are."""
        return tuple(scenario["rationale"]["text"] for scenario in self.figures["scenarios"])

    def __str__(self) -> str:
        return "\n".join(self.words)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        books = [("today", self.figures["book"], "")]
        books += [
            (
                scenario["name"],
                scenario.get("at_full_weight", scenario)["book"],
                scenario["rationale"]["text"],
            )
            for scenario in self.figures["scenarios"]
        ]
        names = {"mean": "mean profit", "var_0.99": "VaR 99%", "es_0.975": "ES 97.5%"}
        rows = [[name, *(f"{book[key]:,.4g}" for key in names)] for name, book, _ in books]
        words = "".join(f"<p>{escape(text)}</p>" for _, _, text in books if text)
        return block("Scenarios", table_html(["scenario", *names.values()], rows), words)


def scenario(
    source: Any,
    *,
    shock: Asked | Mapping[str, float] = None,
    headline: Asked = None,
    on: str | Sequence[str] = (),
    macro: Asked = None,
    stress: Asked = None,
    positions: Any = None,
    horizon: int | None = None,
    interval: str | timedelta | None = None,
    spread: bool = False,
    after: bool = False,
    seed: int = 0,
    draws: int = 4_000,
    skip_unknown: bool = False,
    models: Models | None = "default",
    progress: bool = False,
) -> ScenarioResult:
    """What scenarios would do to each series and to a book, beside the unchanged forecast.

    `source` is what `htfi.backtest` or `htfi.forecast` gave, the folder of a run, or prices. A `shock` is a text such
    as 'SPX -5%, VIX +5', or a mapping of symbols to simple returns; a list of either is several scenarios, as are lists
    of the others. `positions` is a mapping of symbols to money, a frame with symbol and notional, quantity or weight,
    or a path; one unit shared evenly by all without it; `skip_unknown` leaves out those without a series. `progress`
    shows a bar while prices are read and scenarios answered. Raises: InvalidInput, in one line.

    Examples:
        >>> import pandas as pd
        >>> import htfi, htfi.sample
        >>> prices = pd.read_parquet(htfi.sample.FILES[0]).tail(60)
        >>> forecast = htfi.forecast(prices, symbol="SPX")
        >>> what_if = htfi.scenario(forecast, shock={"SPX": -0.05}, positions={"SPX": 1_000_000})
        >>> what_if.book["scenario"].tolist()
        ['today', 'SPX -5%']
    """
    asked = _requests(shock, headline, on, macro, stress)
    if models is None and headline is not None:
        raise InvalidInput("a headline is read by language models: leave `models` out, or name their folders")
    horizon = None if horizon is None else whole_number("horizon", horizon, 1)
    seed, draws = whole_number("seed", seed, 0), whole_number("draws", draws, 1)
    ground, kind = _basis(source, bar_interval(interval), models, progress=progress)
    book = _positions(positions, ground, skip_unknown=skip_unknown)
    now = forecast_now(ground)
    today = forecast_today(ground, now, horizon, seed, draws)
    with progress_bar("scenarios", is_shown=progress) as advance:
        answers = answer_scenarios(
            ground, now, today, asked, book, spreads=spread, follows=after, advance=advance
        )
    return ScenarioResult(scenario_json(ground, answers, seed), kind)


def _requests(
    shock: Asked | Mapping[str, float], headline: Asked, on: str | Sequence[str], macro: Asked, stress: Asked
) -> list[ScenarioRequest]:
    symbols = symbols_asked("on", on)
    if symbols and headline is None:
        raise InvalidInput("`on` names what a headline is about: give a headline")
    shocks: list[Any] = [shock] if isinstance(shock, str | Mapping) else _several("shock", shock)
    asked = [ScenarioRequest(ScenarioKind.HEADLINE, text, symbols) for text in _texts("headline", headline)]
    asked += [ScenarioRequest(ScenarioKind.MACRO, text) for text in _texts("macro", macro)]
    asked += [ScenarioRequest(ScenarioKind.SHOCK, _shock_text(one)) for one in shocks]
    asked += [ScenarioRequest(ScenarioKind.STRESS, text) for text in _texts("stress", stress)]
    if not asked:
        raise InvalidInput("no scenario: give a shock, a headline, a macro surprise or a stress")
    check_requests(asked)
    return asked


def _texts(name: str, asked: Asked) -> list[str]:
    texts = [asked] if isinstance(asked, str) else _several(name, asked)
    if not all(isinstance(text, str) for text in texts):
        raise InvalidInput(f"{name}={asked!r}: give a text, or a list of texts")
    return texts


def _several(name: str, asked: Any) -> list[Any]:
    if asked is None or isinstance(asked, Iterable):
        return list(cast("Iterable[Any]", asked or ()))
    raise InvalidInput(f"{name}={asked!r}: give one scenario, or a list of them")


def _shock_text(shock: Any) -> str:
    if isinstance(shock, str):
        return shock
    if not isinstance(shock, Mapping):
        raise InvalidInput(
            f"shock={shock!r}: give a text such as 'SPX -5%', or a mapping such as {{'SPX': -0.05}}"
        )
    moves = cast("Mapping[str, Any]", shock).items()
    return ", ".join(f"{name} {100.0 * real_number(f'shock of {name}', move):+.12g}%" for name, move in moves)


def _basis(
    source: Any, interval: str | None, models: Models | None, *, progress: bool
) -> tuple[ScenarioBasis, FrameKind]:
    if isinstance(source, str | Path) and Path(source).is_dir():
        settings = with_models(load_settings(), models)
        return open_basis([str(source)], settings, interval=interval), FrameKind.ARROW
    if not isinstance(source, Backtest | ForecastResult):
        source = forecast(source, interval=interval, progress=progress)
    state = replace(source.state, settings=with_models(source.state.settings, models))
    ground = state.basis(interval)
    if ground is None:
        raise InvalidInput(f"no series of interval {interval} has a forecast: there is nothing to change")
    return ground, source.kind


def _positions(positions: Any, ground: ScenarioBasis, *, skip_unknown: bool) -> Positions:
    if positions is None:
        return equal_positions(ground.series, [is_tradable_symbol(symbol) for symbol in ground.symbols])
    if isinstance(positions, str | Path):
        rows, origin = read_table(Path(positions)), str(positions)
    elif isinstance(positions, Mapping):
        sizes = {
            str(name): real_number(f"position in {name}", size)
            for name, size in cast("Mapping[Any, Any]", positions).items()
        }
        rows = [["symbol", "notional"], *([name, repr(size)] for name, size in sizes.items())]
        origin = "positions"
    elif getattr(positions, "ndim", 0) == 1 and hasattr(positions, "to_dict"):  # a Series of pandas
        return _positions(positions.to_dict(), ground, skip_unknown=skip_unknown)
    else:
        columns = {str(name): column.to_pylist() for name, column in read_columns(positions).items()}
        rows = [
            list(columns),
            *(
                ["" if cell is None else str(cell) for cell in row]
                for row in zip(*columns.values(), strict=True)
            ),
        ]
        origin = "the table of positions"
    return read_positions(
        rows, ground.series, ground.prices.tolist(), origin=origin, skip_unknown=skip_unknown
    )
