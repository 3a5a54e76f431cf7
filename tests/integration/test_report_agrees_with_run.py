"""The page's scores, recomputed from the files alone, are those that the run kept as it went."""

import math

import numpy as np
import pytest

from htfi.apps.cli.report.survey import take_survey
from htfi.wiring.outputs import open_recorded
from htfi.wiring.run import open_run
from htfi.wiring.settings import Settings


@pytest.fixture
def prices(tmp_path):
    rng = np.random.default_rng(7)
    lines, levels = ["ts,symbol,open,high,low,close"], {"AAA": 100.0, "BBB": 20.0}
    for minute in range(240):
        for symbol, start in levels.items():
            end = start * math.exp(0.002 * rng.standard_t(4))
            high, low = max(start, end) * 1.0005, min(start, end) * 0.9995
            levels[symbol] = end
            stamp = f"2024-03-04T{9 + minute // 60:02}:{minute % 60:02}:00Z"
            lines.append(f"{stamp},{symbol},{start!r},{high!r},{low!r},{end!r}")
    path = tmp_path / "prices.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_reports_scores_equal_the_runs(tmp_path, prices):
    folder = tmp_path / "run"
    with open_run(Settings(), folder, [str(prices)]) as run:
        run.run_to_end(lambda: None)
        kept = {(row.name, row.horizon): row for row in run.loop.components.forecaster.scores()}
    with open_recorded(folder) as recorded:
        survey = take_survey(recorded.lines(), recorded.size)
    assert survey is not None
    low, high = survey.axes.levels.index(0.05), survey.axes.levels.index(0.95)
    assert len(kept) == len(survey.axes.names) * len(survey.axes.horizons)
    for (name, horizon), row in kept.items():
        h, k = survey.axes.horizons.index(horizon), survey.axes.names.index(name)
        num = survey.num[:, h].sum()
        assert num == row.num
        assert survey.crps[:, h, k].sum() / num == pytest.approx(row.crps, rel=1e-5)
        assert (survey.below[h, k, high] - survey.below[h, k, low]) / num == pytest.approx(
            row.coverage90, abs=1e-9
        )
