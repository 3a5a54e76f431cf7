"""Fans as figures of plotly or matplotlib, whichever is asked for; neither is imported before."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from importlib import import_module
from typing import Any

from htfi.domain.errors import InvalidInput, require_extra
from htfi.library.charts.fan import Fan

_SECONDS_PER_DAY = 86_400
_BANDS = ((0.05, 0.95, "90%", 0.18), (0.25, 0.75, "50%", 0.3))
_BLUE = (43, 108, 176)


class PlotBackend(StrEnum):
    """The library that draws."""

    PLOTLY = "plotly"
    MATPLOTLIB = "matplotlib"


def plot_fans(fans: Sequence[Fan], backend: str) -> Any:
    """A figure with one panel for each fan. Raises: InvalidInput for another library, MissingExtra."""
    if backend not in tuple(PlotBackend):
        raise InvalidInput(f"backend='{backend}': choose one of {', '.join(PlotBackend)}")
    require_extra("plot", "plots", backend)
    match PlotBackend(backend):
        case PlotBackend.PLOTLY:
            return _plotly(fans)
        case PlotBackend.MATPLOTLIB:
            return _matplotlib(fans)


def _plotly(fans: Sequence[Fan]) -> Any:
    go: Any = import_module("plotly.graph_objects")
    subplots: Any = import_module("plotly.subplots")
    figure = subplots.make_subplots(rows=len(fans), cols=1, subplot_titles=[fan.title for fan in fans])
    red, green, blue = _BLUE
    for row, fan in enumerate(fans, 1):
        past, ahead = _moments(fan.past_days), _moments(fan.ahead_days)
        for low, high, name, opacity in _BANDS:
            colour = f"rgba({red},{green},{blue},{opacity})"
            edge = {"width": 0}
            lower = go.Scatter(x=ahead, y=fan.band(low), line=edge, showlegend=False, hoverinfo="skip")
            upper = go.Scatter(
                x=ahead, y=fan.band(high), line=edge, fill="tonexty", fillcolor=colour, name=name,
                showlegend=row == 1,
            )  # fmt: skip
            figure.add_traces([lower, upper], rows=row, cols=1)
        line = {"color": f"rgb({red},{green},{blue})"}
        median = go.Scatter(x=ahead, y=fan.band(0.5), line=line, name="median", showlegend=row == 1)
        price = go.Scatter(x=past, y=fan.history, line={"color": "grey"}, name="price", showlegend=row == 1)
        figure.add_traces([median, price], rows=row, cols=1)
    figure.update_layout(height=320 * len(fans))
    return figure


def _matplotlib(fans: Sequence[Fan]) -> Any:
    """A figure of its own, which no window shows by itself."""
    kind: Any = import_module("matplotlib.figure").Figure
    figure = kind(figsize=(8.0, 3.2 * len(fans)), layout="constrained")
    colour = tuple(part / 255.0 for part in _BLUE)
    for panel, fan in zip(figure.subplots(len(fans), 1, squeeze=False).ravel(), fans, strict=True):
        ahead = _moments(fan.ahead_days)
        for low, high, name, opacity in _BANDS:
            panel.fill_between(
                ahead, fan.band(low), fan.band(high), color=colour, alpha=opacity, linewidth=0, label=name
            )
        panel.plot(ahead, fan.band(0.5), color=colour, label="median")
        panel.plot(_moments(fan.past_days), fan.history, color="grey", label="price")
        panel.set_title(fan.title)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right upper")
    return figure


def _moments(days: Sequence[float]) -> list[datetime]:
    return [datetime.fromtimestamp(day * _SECONDS_PER_DAY, UTC) for day in days]
