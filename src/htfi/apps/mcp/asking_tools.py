"""Tools that have something worked out, by the worker: posted prices, what-if, what a headline says, verification."""

import base64
from typing import Annotated, Any

import msgspec
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from htfi.apps.mcp.models import (
    HeadlineReading,
    InclusionProofGiven,
    PostedForecastsGiven,
    ReadingGiven,
    ScenarioBook,
    ScenarioGiven,
    ScenarioOutcome,
    ScenarioPosition,
    Stress,
    StressLibrary,
    Verification,
)
from htfi.apps.mcp.record_shapes import shown_forecast
from htfi.apps.mcp.serving import RunOf, meter_of
from htfi.apps.mcp.toolbox import make_tool
from htfi.apps.mcp.untrusted import from_outside, quoting
from htfi.client import bodies
from htfi.client.bodies import ForecastQuestion, ScenarioQuestion
from htfi.domain.errors import InvalidInput
from htfi.forecasting.scenarios.requests import PriceShock
from htfi.forecasting.scenarios.stresses import WINDOWS_DAYS, stress_factors, stress_library
from htfi.library.serving.callers import Scope
from htfi.library.serving.record_questions import (
    HeadlineQuestion,
    VerificationAnswer,
    VerificationQuestion,
)

_MAX_BARS = 20_000
Text = Annotated[str, Field(min_length=1, max_length=2_000)]
Symbol = Annotated[str, Field(min_length=1, max_length=200)]
Cell = str | float | int | None


def asking_tools(run_of: RunOf) -> list[Tool]:
    """The tools, of the run that `run_of` gives for a request."""

    async def forecast_prices(
        context: Context,
        bars: Annotated[
            list[dict[str, Cell]],
            Field(
                max_length=_MAX_BARS, description="Rows with a time (date) and a close at least; 30 or more."
            ),
        ],
        symbol: Annotated[str | None, Field(max_length=200)] = None,
        interval: Annotated[str | None, Field(max_length=20, description="Such as 1d or 60s.")] = None,
        horizons: Annotated[list[int] | None, Field(max_length=10, description="In bars.")] = None,
    ) -> PostedForecastsGiven:
        """Forecast prices that you give, apart from the run: nothing is recorded. Policy judges it as any forecast."""
        question = ForecastQuestion(bars, symbol, interval, horizons)
        answer = await (await run_of(context, Scope.ASK)).worker.ask("forecast", question, meter_of(context))
        found = msgspec.json.decode(answer, type=bodies.PostedForecasts)
        return PostedForecastsGiven(
            items=[shown_forecast(one) for one in found.items],
            withheld=found.withheld,
            notes=found.notes,
        )

    async def what_if(
        context: Context,
        headlines: Annotated[list[Text], Field(max_length=8, description="Read as the newest news.")] = [],  # noqa: B006
        on: Annotated[
            list[Symbol], Field(max_length=32, description="Symbols that headlines are read for.")
        ] = [],  # noqa: B006
        shocks: Annotated[
            list[Text], Field(max_length=8, description="Moves together, such as 'SPX -5%, VIX +3sd'.")
        ] = [],  # noqa: B006
        macro: Annotated[list[Text], Field(max_length=8, description="Such as 'US_CPI +2sd'.")] = [],  # noqa: B006
        stresses: Annotated[list[Text], Field(max_length=32, description="Names of list_stresses.")] = [],  # noqa: B006
        positions: Annotated[
            dict[str, float] | None,
            Field(description="Money held by symbol, below zero short; without it one unit, shared evenly."),
        ] = None,
        horizon: Annotated[
            int | None, Field(ge=1, le=10_000, description="In bars; one of the run's.")
        ] = None,
    ) -> ScenarioGiven:
        """What headlines, price shocks, macro surprises or past crises would do to each series of the run and to a
        book, beside today's forecast. Each argument is one scenario or more. Nothing is recorded."""
        if not any((headlines, shocks, macro, stresses)):
            raise InvalidInput("there is no scenario: give headlines, shocks, macro or stresses")
        question = ScenarioQuestion(
            shocks=shocks, headlines=headlines, on=on, macro=macro, stresses=stresses, positions=positions,
            horizon=horizon,
        )  # fmt: skip
        answer = await (await run_of(context, Scope.ASK)).worker.ask("scenario", question, meter_of(context))
        return scenario_answer(msgspec.json.decode(answer))

    async def list_stresses(
        context: Context,
        window_days: Annotated[int, Field(description="1, 5 or 22 trading days.")] = 1,
    ) -> StressLibrary:
        """The named past crises that what_if takes as `stresses`, with what each market factor did."""
        await run_of(context, Scope.READ)
        if window_days not in WINDOWS_DAYS:
            raise InvalidInput(f"window_days is {window_days}: ask for 1, 5 or 22")
        known = stress_factors()
        stresses = [
            Stress(
                name=one.id,
                title=one.title,
                moves={known[name].name: _move(one.shock(known[name], window_days)) for name in one.moves},
            )
            for one in stress_library().values()
        ]
        return StressLibrary(window_days=window_days, stresses=stresses)

    async def read_headline(
        context: Context,
        text: Annotated[str, Field(min_length=1, max_length=2_000, description="The headline.")],
        on: Annotated[list[Symbol], Field(max_length=32, description="Assets asked about.")] = [],  # noqa: B006
        names: Annotated[
            list[Annotated[str, Field(max_length=200)]],
            Field(max_length=32, description="What they are called, in the order of `on`."),
        ] = [],  # noqa: B006
        body: Annotated[str, Field(max_length=60_000, description="The text below the headline.")] = "",
    ) -> HeadlineReading:
        """What a headline is understood to say, and which way and how far it would move each asset: the kind of event,
        who is involved, and the lines of the table of effects that spoke. Without `on`, for what it is mainly about."""
        question = HeadlineQuestion(text, on, names, body)
        answer = await (await run_of(context, Scope.ASK)).worker.ask("headline", question, meter_of(context))
        return HeadlineReading(headline=from_outside(text), readings=_readings(msgspec.json.decode(answer)))

    async def verify_ledger(
        context: Context,
        recompute: Annotated[
            bool, Field(description="Also derive every decision again from its record: slower.")
        ] = False,
    ) -> Verification:
        """Verify the run's record: every hash and signature of the ledger and the files beside it. `holds` is false
        where something was changed, and `problem` says what."""
        run = await run_of(context, Scope.ASK)
        answer = await run.worker.ask("verification", VerificationQuestion(recompute), meter_of(context))
        found = msgspec.json.decode(answer, type=VerificationAnswer)
        return Verification(recomputed=recompute, **msgspec.structs.asdict(found))

    async def prove_decision(
        context: Context,
        index: Annotated[int, Field(ge=0, le=2**62, description="The decision's index in the ledger.")],
        size: Annotated[
            int | None, Field(ge=1, le=2**62, description="Of an earlier signed checkpoint; else the newest.")
        ] = None,
    ) -> InclusionProofGiven:
        """Prove that a decision is in the ledger: an RFC 9162 inclusion proof under a signed checkpoint, which anyone
        can check with the ledger's public key alone."""
        record = (await run_of(context, Scope.READ)).record
        proof: dict[str, Any] = msgspec.json.decode(
            await record.ask(lambda reader: reader.inclusion_proof(index, size))
        )
        base64.b64decode(proof["entry"], validate=True)
        return InclusionProofGiven(**{name: proof[name] for name in InclusionProofGiven.model_fields})

    return [
        make_tool(forecast_prices, "Forecast given prices"),
        make_tool(what_if, "What if"),
        make_tool(list_stresses, "Named stresses"),
        make_tool(read_headline, "What a headline would move"),
        make_tool(verify_ledger, "Verify the record"),
        make_tool(prove_decision, "Prove a decision"),
    ]


def scenario_answer(figures: dict[str, Any]) -> ScenarioGiven:
    """Of the figures of `htfi scenario --json`."""
    before = {one["series"]: one["quantiles"] for one in figures["positions"]}
    return ScenarioGiven(
        as_of=figures["as_of"],
        interval=figures["interval"],
        horizon=figures["horizon"],
        unit=figures["unit"],
        levels=figures["levels"],
        today=_book(figures["book"]),
        scenarios=[_scenario(one, before) for one in figures["scenarios"]],
        notes=[quoting(note) for note in figures["notes"]],
    )


def _scenario(one: dict[str, Any], before: dict[str, list[float]]) -> ScenarioOutcome:
    full: dict[str, Any] | None = one.get("at_full_weight")
    return ScenarioOutcome(
        kind=one["kind"],
        asked=from_outside(one["asked"]),
        rationale=quoting(one["rationale"]["text"]),
        book=_book(one["book"]),
        positions=[
            ScenarioPosition(
                series=at["series"],
                way=at["way"],
                before=before[at["series"]],
                after=at["quantiles"],
                mean_profit=at["mean_profit"],
            )
            for at in one["positions"]
        ],
        weight=one.get("weight"),
        book_if_right=None if full is None else _book(full["book"]),
        notes=[quoting(note) for note in one["notes"]],
    )


def _book(book: dict[str, Any]) -> ScenarioBook:
    return ScenarioBook(
        mean=book["mean"],
        deviation=book["deviation"],
        quantiles=book["quantiles"],
        var_99=book["var_0.99"],
        es_97_5=book["es_0.975"],
    )


def _move(shock: PriceShock) -> str:
    return f"{shock.amount:+g}{shock.unit.value}"


def _readings(lines: list[dict[str, Any]]) -> list[ReadingGiven]:
    return [
        ReadingGiven(
            symbol=one["symbol"],
            event=one["event"],
            event_confidence=one["event_confidence"],
            modality=one["modality"],
            negated=one["negated"],
            direction=one["direction"],
            size_sigmas=one["size_sigmas"],
            volatility=one["volatility"],
            confidence=one["confidence"],
            abstains=one["abstains"],
            why=one["why"],
            lines=one["lines"],
            words=from_outside(one["words"]),
            parties=[from_outside(party["name"]) for party in one["roles"]],
        )
        for one in lines
    ]
