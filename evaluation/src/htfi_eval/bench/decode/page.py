"""The page of `htfi bench decode`: the metrics at a glance, three charts, the whole table; no script, no network."""

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path

from htfi_eval.bench.decode.charts import acceptance_svg, gain_svg, legend, responsive_svg, time_shares_svg
from htfi_eval.bench.decode.measurements import DecodeRuns, Row
from htfi_eval.bench.page import fill_page


def write_page(
    file: Path,
    all_runs: Sequence[DecodeRuns],
    planned: str,
    drafted: str,
    rows: Sequence[Row],
    metrics: Mapping[str, float],
    notes: Sequence[str],
) -> None:
    """`all_runs`: the shipped pair's first; `planned` is the way of the first chart, `drafted` of the second.

    Raises DependencyUnavailable where `file` cannot be written.
    """
    shipped = all_runs[0]
    pieces = {
        "planned": escape(planned),
        "targets": legend([of.label for of in all_runs]),
        "gain": responsive_svg(partial(gain_svg, all_runs, planned)),
        "parts": legend(["draft", "wait", "verify", "rest"]),
        "times": responsive_svg(partial(time_shares_svg, shipped)),
        "drafted": escape(drafted),
        "kinds": legend(shipped.kinds),
        "survival": acceptance_svg(shipped, drafted),
    }
    fill_page(file, "decode_page.html", pieces, rows, metrics, notes)
