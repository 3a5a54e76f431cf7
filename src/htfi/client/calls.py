"""Requests to the service as values: what each asks, and how its answer is read. Both forms of the client send them."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from htfi.client.bodies import (
    ChartBody,
    ExplanationBody,
    ForecastBody,
    ForecastPage,
    ForecastQuestion,
    Health,
    PostedForecasts,
    Problem,
    ScenarioQuestion,
    SeriesPage,
)
from htfi.client.news_bodies import ReadNewsBody
from htfi.domain.errors import DependencyUnavailable, HtfiError

T = TypeVar("T")
Json = dict[str, Any]


class ServiceProblem(HtfiError):
    """The service refused a request: `status` of HTTP, and what it says."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class DecisionPage(msgspec.Struct, frozen=True):
    """Lines of decisions.jsonl, newest first, and the index to ask for older ones with; None on the last page."""

    items: list[Json]
    next: int | None


class Call(msgspec.Struct, Generic[T], frozen=True):
    """One request. `shape` is what its answer is read as; bytes are given as they come."""

    method: str
    path: str
    shape: type[T]
    query: Mapping[str, str | int] = {}
    body: msgspec.Struct | None = None
    key: str = ""  # of an act: asked again with the same one it is done once

    @property
    def headers(self) -> dict[str, str]:
        kind = {"Content-Type": "application/json"} if self.body is not None else {}
        return kind | ({"Idempotency-Key": self.key} if self.key else {})

    @property
    def content(self) -> bytes | None:
        """The body as JSON."""
        return None if self.body is None else msgspec.json.encode(self.body)

    def read(self, status: int, content: bytes) -> T:
        """Raises: ServiceProblem; DependencyUnavailable where the answer is not one of the service."""
        if status >= 400:
            raise problem_of(status, content)
        if self.shape is bytes:
            return content  # pyright: ignore[reportReturnType] - T is bytes
        try:
            return msgspec.json.decode(content, type=self.shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DependencyUnavailable(f"{self.path}: the answer is not the service's: {error}") from None


def problem_of(status: int, content: bytes) -> ServiceProblem:
    """What a refusal says."""
    try:
        detail = msgspec.json.decode(content, type=Problem).detail
    except (msgspec.DecodeError, UnicodeDecodeError):
        detail = f"the service answered {status}"
    return ServiceProblem(status, detail)


def health() -> Call[Health]:
    """Also where the service is not well: then it answers 503, and the call raises."""
    return Call("GET", "/v1/health", Health)


def series() -> Call[SeriesPage]:
    return Call("GET", "/v1/series", SeriesPage)


def forecast(name: str) -> Call[ForecastBody]:
    return Call("GET", f"/v1/forecasts/{_path(name)}", ForecastBody)


def forecasts(after: str, limit: int) -> Call[ForecastPage]:
    return Call("GET", "/v1/forecasts", ForecastPage, {"after": after, "limit": limit})


def history(name: str, before: int | None, limit: int) -> Call[ForecastPage]:
    return Call("GET", f"/v1/history/{_path(name)}", ForecastPage, _given(before=before, limit=limit))


def chart(name: str, limit: int) -> Call[ChartBody]:
    return Call("GET", f"/v1/charts/{_path(name)}", ChartBody, {"limit": limit})


def decisions(symbol: str, before: int | None, limit: int) -> Call[DecisionPage]:
    return Call("GET", "/v1/decisions", DecisionPage, _given(symbol=symbol, before=before, limit=limit))


def decision(index: int) -> Call[Json]:
    return Call("GET", f"/v1/decisions/{index:d}", Json)


def explanation(index: int) -> Call[ExplanationBody]:
    return Call("GET", f"/v1/decisions/{index:d}/explanation", ExplanationBody)


def decision_news(index: int) -> Call[ReadNewsBody]:
    return Call("GET", f"/v1/decisions/{index:d}/news", ReadNewsBody)


def proof(index: int, size: int | None) -> Call[bytes]:
    return Call("GET", f"/v1/decisions/{index:d}/proof", bytes, _given(size=size))


def checkpoint() -> Call[bytes]:
    return Call("GET", "/checkpoint", bytes)


def forecast_bars(question: ForecastQuestion) -> Call[PostedForecasts]:
    return Call("POST", "/v1/forecasts", PostedForecasts, body=question)


def scenario(question: ScenarioQuestion) -> Call[Json]:
    return Call("POST", "/v1/scenarios", Json, body=question)


def _path(name: str) -> str:
    """A series as part of a path, such as EUR/USD/60s; dots cannot climb."""
    return "/".join(quote(part, safe="") for part in name.split("/"))


def _given(**named: str | int | None) -> dict[str, str | int]:
    return {name: value for name, value in named.items() if value is not None}
