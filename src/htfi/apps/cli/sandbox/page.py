"""The page of `htfi sandbox --html`: the verdict, losses beside the champion's, each trial; no script, no network."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from htfi.apps.cli.sandbox.text import COLUMNS, cells, enforcement_lines, headline
from htfi.apps.display.page import page_html
from htfi.domain.time import format_ns
from htfi.governance.sandbox.entries import SHIPPED
from htfi.governance.sandbox.results import TrialResult
from htfi.library.charts.figures import chart_html
from htfi.library.charts.specs import BarChart

if TYPE_CHECKING:
    from htfi.wiring.sandbox.examination import Examination

_Z95 = 1.959964
_STYLE = """.verdict { font-size: 20px; font-weight: 600; margin: 18px 0 6px; } .passed { color: var(--good); }
.rejected { color: var(--short); } .why li { padding: 3px 0; max-width: 100ch; } .open { color: var(--short); }
.data td:last-child, .data th:last-child { text-align: left; white-space: normal; min-width: 22ch; }
.origin, .lead, .why { overflow-wrap: anywhere; }
"""


def page(found: "Examination") -> str:
    """The whole page."""
    verdict = found.verdict
    word, style = ("Passed", "passed") if verdict.passed else ("Rejected", "rejected")
    compared = [
        result for result in verdict.results if result.loss is not None and result.loss_error is not None
    ]
    why = "".join(
        f"<li><b>{escape(one.check.value)}</b>{escape(f' ({one.trial})' if one.trial else '')}: {escape(one.why)}</li>"
        for one in verdict.failed
    )
    given = "".join(
        f"<div><b>{escape(figure)}</b><span>{escape(label)}</span></div>"
        for figure, label in _at_a_glance(found)
    )
    held = "".join(
        f"<li{' class=open' if line.startswith('NOT') else ''}>{escape(line.removeprefix('held by: '))}</li>"
        for line in enforcement_lines(found)
    )
    body = (
        f"<h1>Sandbox <span>{escape(verdict.candidate)} · {escape(format_ns(verdict.at_ns))}</span></h1>"
        f'<p class="verdict {style}">{word}</p><p class="lead">{escape(headline(verdict))}</p>'
        f'<div class="figures">{given}</div>'
        f"{f'<h3 class=table>Why</h3><ul class=why>{why}</ul>' if why else ''}"
        f"{_chart(compared) if compared else ''}"
        f'<h3 class="table">Trials</h3>{_table(COLUMNS, cells(verdict.results, verdict))}'
        '<p class="note">Loss: CRPS over the champion’s. p worse: the chance of such a loss were it worse by '
        "2%. Moved: how far attacks move a median, in widths of the 90% band. In time: readings over a "
        "link that the target answered before the deadline; for the others the draft did. p95: candidate / "
        "champion.</p>"
        f'<h3 class="table">What held it</h3><ul class="notes">{held}</ul>'
        f'<p class="origin">candidate {escape(verdict.digest)} · history {escape(verdict.history_digest)}</p>'
    )
    return page_html("HTFI sandbox", body, style=_STYLE, is_generated=False)


def _chart(results: Sequence[TrialResult]) -> str:
    values = [result.loss or 0.0 for result in results]
    errors = [_Z95 * (result.loss_error or 0.0) for result in results]
    chart = BarChart(
        "Loss beside the champion’s", "Ratio of mean CRPS with its 95% interval; below 1 the candidate is better.",
        [result.trial for result in results], values,
        [value - error for value, error in zip(values, errors, strict=True)],
        [value + error for value, error in zip(values, errors, strict=True)], zero=1.0,
    )  # fmt: skip
    return f'<div class="charts">{chart_html(chart)}</div>'


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    kept = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    head = "".join(f"<th>{escape(columns[place])}</th>" for place in kept)
    body = "".join(f"<tr>{''.join(f'<td>{escape(row[place])}</td>' for place in kept)}</tr>" for row in rows)
    return f'<div class="scroll"><table class="data"><tr>{head}</tr>{body}</table></div>'


def _at_a_glance(found: "Examination") -> list[tuple[str, str]]:
    verdict = found.verdict
    shown = [
        (
            "what ships" if verdict.champion_digest == SHIPPED else verdict.champion_digest[:12],
            "the champion",
        ),
        (f"{verdict.num_tries}", f"tries of {verdict.lineage} since its last promotion, this one among them"),
        (f"{verdict.permitted_chance:.2g}", "permitted chance that a worse candidate passes this try"),
        (f"{len(verdict.results)} of {len(verdict.trials)}", "trials were run"),
        (f"{found.seconds:.0f} s", "this took"),
    ]
    if verdict.gain_is_real is not None:
        shown.insert(
            3,
            (
                f"{100 * verdict.gain_is_real:.0f}%",
                "sure that its gain is more than the luck of so many tries",
            ),
        )
    if found.record is not None:
        shown.append((f"entry {found.record}", "of the governance log"))
    return shown
