"""Results as figures of plotly or matplotlib, whichever is asked for; neither is imported before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib import import_module
from typing import Any

from htfi.domain.errors import InvalidInput, require_extra
from htfi.library.charts.fan import Fan

_SECONDS_PER_DAY = 86_400
_BLUE = (43, 108, 176)
_OPACITY = {"90%": 0.18, "50%": 0.3}  # of a band, by its name


class PlotBackend(StrEnum):
    """The library that draws."""

    PLOTLY = "plotly"
    MATPLOTLIB = "matplotlib"


@dataclass(frozen=True, slots=True)
class PlotPanel:
    """One panel of a figure, over days since 1970: bands with their ends, the median, and what came (`actual`)."""

    title: str
    days: Sequence[float]
    bands: Sequence[tuple[str, Sequence[float], Sequence[float]]]
    median: Sequence[float]
    actual_days: Sequence[float]
    actual: Sequence[float]
    actual_name: str


def fan_panel(fan: Fan) -> PlotPanel:
    """The price so far, and the bands ahead of it."""
    bands = [("90%", fan.band(0.05), fan.band(0.95)), ("50%", fan.band(0.25), fan.band(0.75))]
    return PlotPanel(fan.title, fan.ahead_days, bands, fan.band(0.5), fan.past_days, fan.history, "price")


def plot(panels: Sequence[PlotPanel], backend: str) -> Any:
    """A figure with these panels below each other. Raises: InvalidInput for another library, MissingExtra."""
    if backend not in tuple(PlotBackend):
        raise InvalidInput(f"backend='{backend}': choose one of {', '.join(PlotBackend)}")
    require_extra("plot", "plots", backend)
    match PlotBackend(backend):
        case PlotBackend.PLOTLY:
            return _plotly(panels)
        case PlotBackend.MATPLOTLIB:
            return _matplotlib(panels)


def _plotly(panels: Sequence[PlotPanel]) -> Any:
    go: Any = import_module("plotly.graph_objects")
    subplots: Any = import_module("plotly.subplots")
    figure = subplots.make_subplots(rows=len(panels), cols=1, subplot_titles=[one.title for one in panels])
    red, green, blue = _BLUE
    for row, panel in enumerate(panels, 1):
        times, named = _moments(panel.days), {"showlegend": row == 1}
        for name, low, high in panel.bands:
            colour = f"rgba({red},{green},{blue},{_OPACITY[name]})"
            edge = {"width": 0}
            lower = go.Scatter(x=times, y=low, line=edge, showlegend=False, hoverinfo="skip")
            upper = go.Scatter(
                x=times, y=high, line=edge, fill="tonexty", fillcolor=colour, name=name, **named
            )
            figure.add_traces([lower, upper], rows=row, cols=1)
        line = {"color": f"rgb({red},{green},{blue})"}
        median = go.Scatter(x=times, y=panel.median, line=line, name="median", **named)
        actual = go.Scatter(
            x=_moments(panel.actual_days), y=panel.actual, line={"color": "grey"}, name=panel.actual_name, **named
        )  # fmt: skip
        figure.add_traces([median, actual], rows=row, cols=1)
    figure.update_layout(height=320 * len(panels))
    return figure


def _matplotlib(panels: Sequence[PlotPanel]) -> Any:
    """A figure of its own, which no window shows by itself."""
    kind: Any = import_module("matplotlib.figure").Figure
    figure = kind(figsize=(8.0, 3.2 * len(panels)), layout="constrained")
    colour = tuple(part / 255.0 for part in _BLUE)
    for axes, panel in zip(figure.subplots(len(panels), 1, squeeze=False).ravel(), panels, strict=True):
        times = _moments(panel.days)
        for name, low, high in panel.bands:
            axes.fill_between(times, low, high, color=colour, alpha=_OPACITY[name], linewidth=0, label=name)
        axes.plot(times, panel.median, color=colour, label="median")
        axes.plot(_moments(panel.actual_days), panel.actual, color="grey", label=panel.actual_name)
        axes.set_title(panel.title)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right upper")
    return figure


def _moments(days: Sequence[float]) -> list[datetime]:
    return [datetime.fromtimestamp(day * _SECONDS_PER_DAY, UTC) for day in days]
