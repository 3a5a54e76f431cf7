"""What `htfi scenario --json` writes: every figure of the table and of the page, as plain JSON values."""

from typing import Any

import msgspec

from htfi.domain.time import format_ns
from htfi.forecasting.scenarios.effects import EventProbability
from htfi.forecasting.scenarios.measures import (
    ES_LEVEL,
    LEVELS,
    VAR_LEVEL,
    PortfolioFigures,
    ScenarioComparison,
)
from htfi.library.scenarios.rationale import chance_words, known_moves, scenario_rationale
from htfi.pipeline.scenarios.answers import ScenarioAnswer, ScenarioAnswers
from htfi.pipeline.scenarios.basis import ScenarioBasis


def scenario_json(ground: ScenarioBasis, answers: ScenarioAnswers, seed: int) -> dict[str, Any]:
    """JSON values: amounts in money or shares of the book, positions' quantiles as simple returns at `levels`."""
    today = answers.today
    return {
        "origin": ground.origin,
        "as_of": format_ns(ground.as_of_ns),
        "interval": ground.interval,
        "horizon": today.horizon,
        "seed": seed,
        "draws": len(today.returns),
        "instants": today.num_instants,
        "levels": list(LEVELS),
        "unit": "money" if answers.positions.in_money else "share of the book",
        "book": {
            "gross": answers.positions.gross,
            "net": answers.positions.net,
            **_book(answers.book_before),
        },
        "positions": [
            {
                "series": series,
                "holding": float(answers.positions.portfolio.notionals[place]),
                "price": float(today.prices[place]),
                "sigma": float(today.sigma[place]),
                "regime": ground.regime(place).value,
                "quantiles": answers.before[place].tolist(),
                "mean_profit": answers.book_before.means[place],
                "share_of_es": answers.book_before.shares_of_es[place],
            }
            for place, series in enumerate(today.series)
        ],
        "scenarios": [_scenario(ground, answers, answer) for answer in answers.answers],
        "notes": list(answers.notes),
    }


def _scenario(ground: ScenarioBasis, answers: ScenarioAnswers, answer: ScenarioAnswer) -> dict[str, Any]:
    rationale = scenario_rationale(ground, answers, answer)
    found: dict[str, Any] = {
        "kind": answer.asked.kind.value,
        "name": answer.asked.name or answer.title,
        "asked": answer.asked.text,
        "on": list(answer.asked.on),
        "moves": list(answer.moves),
        "chance_of_moves": _chance(
            answer.chance, [answers.today.series[place] for place in known_moves(answer.ways)]
        ),
        "rationale": {
            "text": rationale.text,
            "template": rationale.template,
            "slots": [dict(slots) for slots in rationale.slots],
        },
        **_change(answers, answer, answer.change),
        "notes": list(answer.notes),
    }
    if answer.next_forecast is not None:
        found["after"] = [
            {"series": series, "regime": regime.value, "band90": band}
            for series, regime, band in zip(
                answers.today.series,
                answer.next_forecast.regimes,
                answer.next_forecast.bands.tolist(),
                strict=True,
            )
        ]
    if answer.full is not None:
        found["weight"] = answer.weight
        found["roles"] = {series: role.name.lower() for series, role in answer.roles.items()}
        found["at_full_weight"] = _change(answers, answer, answer.full)
        found["views"] = {
            series: msgspec.to_builtins(msgspec.structs.replace(view, trace=None))
            for series, view in (answer.views or {}).items()
        }
    return found


def _change(answers: ScenarioAnswers, answer: ScenarioAnswer, change: ScenarioComparison) -> dict[str, Any]:
    return {
        "book": _book(change.portfolio_after),
        "chance": _chance(change.probability, _whose(answer, change)),
        "positions": [
            {
                "series": series,
                "way": answer.ways[place].value,
                "quantiles": change.after[place].tolist(),
                "mean_profit": change.portfolio_after.means[place],
                "share_of_es": change.portfolio_after.shares_of_es[place],
            }
            for place, series in enumerate(answers.today.series)
        ],
    }


def _whose(answer: ScenarioAnswer, change: ScenarioComparison) -> str:
    if answer.full is None:
        return "the book"
    return "the book, if the reader is right" if change is answer.full else "the book, at earned weight"


def _chance(chance: EventProbability | None, of: str | list[str]) -> dict[str, Any] | None:
    """`probability` is null where no scenario went so far: then it is below `at_most`."""
    if chance is None:
        return None
    return {
        "of": of,
        "probability": chance.share,
        "at_most": 1.0 / chance.num_draws if chance.share is None else chance.share,
        "scenarios": [chance.num, chance.num_draws],
        "past_bars": [chance.num_past, chance.num_instants],
        "text": chance_words(chance),
    }


def _book(book: PortfolioFigures) -> dict[str, Any]:
    return {
        "mean": book.mean,
        "deviation": book.deviation,
        "quantiles": list(book.quantiles),
        f"var_{VAR_LEVEL:g}": book.var99,
        f"es_{ES_LEVEL:g}": book.es975,
    }
