"""What `htfi scenario --json` writes: every figure of the table and of the page, as plain JSON values."""

from typing import Any

import msgspec

from htfi.apps.cli.scenario_words import rationale
from htfi.domain.time import format_ns
from htfi.forecasting.scenarios.measures import ES_LEVEL, LEVELS, VAR_LEVEL, BookFigures, Change
from htfi.wiring.scenario import Ground
from htfi.wiring.scenario_answers import Answer, Answers


def figures(ground: Ground, answers: Answers, seed: int) -> dict[str, Any]:
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
        "book": _book(answers.book_before),
        "positions": [
            {
                "series": series,
                "holding": float(answers.positions.book.notionals[place]),
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


def _scenario(ground: Ground, answers: Answers, answer: Answer) -> dict[str, Any]:
    told = rationale(ground, answers, answer)
    likelihood = answer.likelihood
    found: dict[str, Any] = {
        "kind": answer.asked.kind.value,
        "name": answer.asked.name or answer.title,
        "asked": answer.asked.text,
        "on": list(answer.asked.on),
        "moves": list(answer.moves),
        "probability": likelihood.probability if likelihood else None,
        "probability_of": likelihood.of if likelihood else "",
        "scores": list(likelihood.scores) if likelihood else None,
        "rationale": {
            "text": told.text,
            "template": told.template,
            "slots": [dict(slots) for slots in told.slots],
        },
        **_change(answers, answer, answer.change),
        "notes": list(answer.notes),
    }
    if answer.after is not None:
        found["after"] = [
            {"series": series, "regime": regime.value, "band90": band}
            for series, regime, band in zip(
                answers.today.series, answer.after.regimes, answer.after.bands.tolist(), strict=True
            )
        ]
    if answer.full is not None:
        found["weight"] = answer.weight
        found["at_full_weight"] = _change(answers, answer, answer.full)
        found["views"] = {
            series: msgspec.to_builtins(msgspec.structs.replace(view, wording=None))
            for series, view in (answer.views or {}).items()
        }
    return found


def _change(answers: Answers, answer: Answer, change: Change) -> dict[str, Any]:
    return {
        "book": {**_book(change.book_after), "chance_today": change.chance},
        "positions": [
            {
                "series": series,
                "way": answer.ways[place].value,
                "quantiles": change.after[place].tolist(),
                "mean_profit": change.book_after.means[place],
                "share_of_es": change.book_after.shares_of_es[place],
            }
            for place, series in enumerate(answers.today.series)
        ],
    }


def _book(book: BookFigures) -> dict[str, Any]:
    return {
        "mean": book.mean,
        "deviation": book.deviation,
        "quantiles": list(book.quantiles),
        f"var_{VAR_LEVEL:g}": book.var99,
        f"es_{ES_LEVEL:g}": book.es975,
    }
