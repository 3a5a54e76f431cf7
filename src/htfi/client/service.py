"""The client of `htfi serve`, over httpx (extra `[client]`): `Client` waits, `AsyncClient` is awaited.

Every method raises ServiceProblem where the service refuses, and DependencyUnavailable where it cannot be reached.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

import httpx

from htfi.client import calls
from htfi.client.bodies import (
    ChartBody,
    ExplanationBody,
    ForecastBody,
    ForecastPage,
    ForecastQuestion,
    Health,
    PostedForecasts,
    ScenarioQuestion,
    SeriesPage,
)
from htfi.client.events import EventReader, StreamedDecision
from htfi.client.news_bodies import ReadNewsBody
from htfi.domain.errors import DependencyUnavailable, InvalidInput

T = TypeVar("T")
_STREAM = "/v1/stream"
_SILENCE_S = 60.0  # the service sends something every 15 s
_WAIT_S = 1.0  # before a stream that broke is opened again
_NUM_TRIES = 10  # of an act whose answer was lost


class Client:
    """A service at a URL, such as http://127.0.0.1:8350, with the key that it demands, if any. Close it after use.

    Examples:
        >>> from htfi.client import Client
        >>> with Client("http://127.0.0.1:8350") as service:  # doctest: +SKIP
        ...     print(service.forecast("SPX/1d"))
    """

    def __init__(self, url: str, key: str = "", *, timeout_s: float = 65.0) -> None:
        """Raises: InvalidInput where the URL is none of a service."""
        self._http = httpx.Client(
            base_url=_address(url), timeout=timeout_s, headers=_headers(key), trust_env=False
        )

    def health(self) -> Health:
        """Whether the service and its run are well."""
        return self.send(calls.health())

    def series(self) -> SeriesPage:
        """The series of the run."""
        return self.send(calls.series())

    def forecast(self, series: str) -> ForecastBody:
        """The newest released forecast of a series, such as ACME/1d."""
        return self.send(calls.forecast(series))

    def forecasts(self, after: str = "", limit: int = 100) -> ForecastPage:
        """The newest forecast of every series, in order of their names after `after`."""
        return self.send(calls.forecasts(after, limit))

    def history(self, series: str, before: int | None = None, limit: int = 100) -> ForecastPage:
        """Earlier released forecasts of a series, newest first."""
        return self.send(calls.history(series, before, limit))

    def chart(self, series: str, limit: int = 250) -> ChartBody:
        """Prices, the bands that were forecast for them, and the fan ahead."""
        return self.send(calls.chart(series, limit))

    def decisions(self, symbol: str = "", before: int | None = None, limit: int = 100) -> calls.DecisionPage:
        """Lines of decisions.jsonl, newest first; `symbol` may be a series."""
        return self.send(calls.decisions(symbol, before, limit))

    def decision(self, index: int) -> calls.Json:
        """One line, by its index in the ledger."""
        return self.send(calls.decision(index))

    def explanation(self, index: int) -> ExplanationBody:
        """What became of the news in a decision."""
        return self.send(calls.explanation(index))

    def decision_news(self, index: int) -> ReadNewsBody:
        """The headlines that a decision considered, with the words that counted."""
        return self.send(calls.decision_news(index))

    def proof(self, index: int, size: int | None = None) -> bytes:
        """That a decision is in the ledger: what `htfi ledger check-proof` takes."""
        return self.send(calls.proof(index, size))

    def checkpoint(self) -> bytes:
        """The newest signed checkpoint."""
        return self.send(calls.checkpoint())

    def forecast_bars(self, question: ForecastQuestion) -> PostedForecasts:
        """Forecasts of bars that are posted; nothing is recorded."""
        return self.send(calls.forecast_bars(question))

    def scenario(self, question: ScenarioQuestion) -> calls.Json:
        """What headlines, shocks, surprises and stresses would do to the run's series and a book."""
        return self.send(calls.scenario(question))

    def stream(self, first: int | None = None) -> Iterator[StreamedDecision]:
        """Decisions from an index on (without one: from the next), each once and in order, as they are released.

        A connection that breaks, and a service that ends and comes back, are waited for. Raises: ServiceProblem.
        """
        reader = EventReader(self.health().num_entries if first is None else first)
        while True:
            with (
                suppress(httpx.TransportError),
                self._http.stream("GET", _STREAM, params=reader.query, timeout=_SILENCE_S) as answer,
            ):
                if answer.status_code >= 400:
                    raise calls.problem_of(answer.status_code, answer.read())
                for line in answer.iter_lines():
                    found = reader.take(line)
                    if found is not None:
                        yield found
            time.sleep(_WAIT_S)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, call: calls.Call[T]) -> T:
        """The answer to a request of `htfi.client.acts` or `.calls`; an act whose answer is lost is asked for again."""
        for tries_left in range(_NUM_TRIES if call.key else 1, 0, -1):
            try:
                answer = self._http.request(
                    call.method, call.path, params=call.query, content=call.content, headers=call.headers
                )
                return call.read(answer.status_code, answer.content)
            except httpx.TransportError as error:
                if tries_left == 1:
                    raise _unreached(self._http.base_url, error) from error
                time.sleep(_WAIT_S)
        raise AssertionError("a request is tried at least once")


class AsyncClient:
    """The same, awaited. Close it after use.

    Examples:
        >>> from htfi.client import AsyncClient
        >>> async with AsyncClient("http://127.0.0.1:8350") as service:  # doctest: +SKIP
        ...     print(await service.forecast("SPX/1d"))
    """

    def __init__(self, url: str, key: str = "", *, timeout_s: float = 65.0) -> None:
        """Raises: InvalidInput where the URL is none of a service."""
        self._http = httpx.AsyncClient(
            base_url=_address(url), timeout=timeout_s, headers=_headers(key), trust_env=False
        )

    async def health(self) -> Health:
        """Whether the service and its run are well."""
        return await self.send(calls.health())

    async def series(self) -> SeriesPage:
        """The series of the run."""
        return await self.send(calls.series())

    async def forecast(self, series: str) -> ForecastBody:
        """The newest released forecast of a series, such as ACME/1d."""
        return await self.send(calls.forecast(series))

    async def forecasts(self, after: str = "", limit: int = 100) -> ForecastPage:
        """The newest forecast of every series, in order of their names after `after`."""
        return await self.send(calls.forecasts(after, limit))

    async def history(self, series: str, before: int | None = None, limit: int = 100) -> ForecastPage:
        """Earlier released forecasts of a series, newest first."""
        return await self.send(calls.history(series, before, limit))

    async def chart(self, series: str, limit: int = 250) -> ChartBody:
        """Prices, the bands that were forecast for them, and the fan ahead."""
        return await self.send(calls.chart(series, limit))

    async def decisions(
        self, symbol: str = "", before: int | None = None, limit: int = 100
    ) -> calls.DecisionPage:
        """Lines of decisions.jsonl, newest first; `symbol` may be a series."""
        return await self.send(calls.decisions(symbol, before, limit))

    async def decision(self, index: int) -> calls.Json:
        """One line, by its index in the ledger."""
        return await self.send(calls.decision(index))

    async def explanation(self, index: int) -> ExplanationBody:
        """What became of the news in a decision."""
        return await self.send(calls.explanation(index))

    async def decision_news(self, index: int) -> ReadNewsBody:
        """The headlines that a decision considered, with the words that counted."""
        return await self.send(calls.decision_news(index))

    async def proof(self, index: int, size: int | None = None) -> bytes:
        """That a decision is in the ledger: what `htfi ledger check-proof` takes."""
        return await self.send(calls.proof(index, size))

    async def checkpoint(self) -> bytes:
        """The newest signed checkpoint."""
        return await self.send(calls.checkpoint())

    async def forecast_bars(self, question: ForecastQuestion) -> PostedForecasts:
        """Forecasts of bars that are posted; nothing is recorded."""
        return await self.send(calls.forecast_bars(question))

    async def scenario(self, question: ScenarioQuestion) -> calls.Json:
        """What headlines, shocks, surprises and stresses would do to the run's series and a book."""
        return await self.send(calls.scenario(question))

    async def stream(self, first: int | None = None) -> AsyncIterator[StreamedDecision]:
        """Decisions from an index on (without one: from the next), each once and in order, as they are released.

        A connection that breaks, and a service that ends and comes back, are waited for. Raises: ServiceProblem.
        """
        reader = EventReader((await self.health()).num_entries if first is None else first)
        while True:
            with suppress(httpx.TransportError):
                async with self._http.stream(
                    "GET", _STREAM, params=reader.query, timeout=_SILENCE_S
                ) as answer:
                    if answer.status_code >= 400:
                        raise calls.problem_of(answer.status_code, await answer.aread())
                    async for line in answer.aiter_lines():
                        found = reader.take(line)
                        if found is not None:
                            yield found
            await asyncio.sleep(_WAIT_S)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(self, call: calls.Call[T]) -> T:
        """The answer to a request of `htfi.client.acts` or `.calls`; an act whose answer is lost is asked for again."""
        for tries_left in range(_NUM_TRIES if call.key else 1, 0, -1):
            try:
                answer = await self._http.request(
                    call.method, call.path, params=call.query, content=call.content, headers=call.headers
                )
                return call.read(answer.status_code, answer.content)
            except httpx.TransportError as error:
                if tries_left == 1:
                    raise _unreached(self._http.base_url, error) from error
                await asyncio.sleep(_WAIT_S)
        raise AssertionError("a request is tried at least once")


def _address(url: str) -> httpx.URL:
    found = httpx.URL(url)
    if found.scheme not in ("http", "https") or not found.host:
        raise InvalidInput(f"{url[:200]} is no address of a service: write http://HOST:PORT or https://HOST")
    return found


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _unreached(url: httpx.URL, error: httpx.TransportError) -> DependencyUnavailable:
    return DependencyUnavailable(f"{url}: {error or type(error).__name__}: is `htfi serve` running there?")
