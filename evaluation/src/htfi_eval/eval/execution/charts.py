"""Charts of `htfi eval execution`: shortfall by algorithm and routing, what routing saves, adverse selection."""

from collections.abc import Sequence

from htfi.library.charts.specs import BarChart, Chart, DotChart, DotGroup
from htfi_eval.eval.execution.judging import SMART, Judged, gain_interval, mean_interval


def charts_of(judged: Sequence[Judged], seed: int) -> list[Chart]:
    """Of each stock its algorithms; of all what routing saves."""
    charts: list[Chart] = [_saved(judged, seed)]
    for one in judged:
        charts += [_shortfalls(one, seed), _adverse(one, seed)]
    return charts


def _saved(judged: Sequence[Judged], seed: int) -> BarChart:
    names: list[str] = []
    found: list[tuple[float, float, float]] = []
    for one in judged:
        main = next(algorithm for algorithm, routing in one.costs if routing == one.best)
        for label, smart, naive in (
            ("assumed fees", one.costs[main, SMART], one.costs[main, one.best]),
            ("equal fees", one.equal_fees[SMART], one.equal_fees[one.best]),
        ):
            names.append(f"{one.symbol} against {one.names[one.best]}, {label}")
            found.append(gain_interval(smart, naive, seed))
    return BarChart(
        "Share of the shortfall that smart routing saves against the best single venue",
        "Above zero it saves; 95% intervals by a bootstrap of hours.",
        names,
        [gain for gain, _, _ in found],
        [low for _, low, _ in found],
        [high for _, _, high in found],
        unit="%",
    )


def _shortfalls(one: Judged, seed: int) -> DotChart:
    algorithms = list(dict.fromkeys(algorithm for algorithm, _ in one.costs))
    naive = next(routing for _, routing in one.costs if routing != SMART)
    groups: list[DotGroup] = []
    for routing, label in ((SMART, SMART), (naive, f"{one.names[naive]} alone")):
        found = [
            mean_interval(one.costs[algorithm, routing].shortfall, one.costs[algorithm, routing].blocks, seed)
            for algorithm in algorithms
        ]
        groups.append(
            DotGroup(
                label,
                [mean for mean, _, _ in found],
                [low for _, low, _ in found],
                [high for _, _, high in found],
            )
        )
    return DotChart(
        f"{one.symbol}: shortfall against the arrival, by algorithm and routing",
        "Basis points, fees included; lower is better; 95% intervals by a bootstrap of hours.",
        [algorithm.value for algorithm in algorithms],
        groups,
        zero=0.0,
        unit="bp",
    )


def _adverse(one: Judged, seed: int) -> BarChart:
    smart = [(algorithm, costs) for (algorithm, routing), costs in one.costs.items() if routing == SMART]
    found = [mean_interval(costs.adverse, costs.blocks, seed) for _, costs in smart]
    return BarChart(
        f"{one.symbol}: how far the market moved against fills that had rested, ten seconds later",
        "Basis points, smart routing; above zero the market went on through the price.",
        [algorithm.value for algorithm, _ in smart],
        [_known(mean) for mean, _, _ in found],
        [_known(low) for _, low, _ in found],
        [_known(high) for _, _, high in found],
        unit="bp",
    )


def _known(value: float) -> float | None:
    return value if value == value else None
