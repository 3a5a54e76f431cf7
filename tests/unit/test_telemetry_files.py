"""docs/telemetry.md, dashboards and alert rules speak of the metrics that exist, with the labels that they have."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from htfi.telemetry.catalogue import METRICS, MetricKind
from htfi.telemetry.logs import LogEvent

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
ALERTS = yaml.safe_load((ROOT / "deploy" / "prometheus" / "htfi-alerts.yml").read_text(encoding="utf-8"))
RULES: list[dict[str, Any]] = [rule for group in ALERTS["groups"] for rule in group["rules"]]
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
TARGET_LABELS = {"job", "instance"}  # that Prometheus adds
OTHERS = {"up": {"job"}, "process_resident_memory_bytes": set(), "process_cpu_seconds_total": set()}
UNITS = {"short", "s", "ops", "reqps", "bytes", "percentunit"}  # Grafana's names
_WORDS = frozenset(("histogram_quantile",))  # of PromQL, with a low line in them


def known_names() -> dict[str, set[str]]:
    """The labels of every sample, by its name."""
    found = dict(OTHERS)
    for spec in METRICS:
        if spec.kind is MetricKind.HISTOGRAM:
            found[f"{spec.name}_bucket"] = {*spec.labels, "le"}
            found[f"{spec.name}_sum"] = found[f"{spec.name}_count"] = set(spec.labels)
        else:
            found[spec.name] = set(spec.labels)
    return found


def check_query(query: str) -> list[str]:
    """What is wrong with a query; the metrics in it are returned by `metrics_of`."""
    names, wrong = known_names(), list[str]()
    used: set[str] = set()
    for name, selector in re.findall(
        r"([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?\s*(?=[\[\s)=<>*/+\-,]|$)", _stripped(query)
    ):
        if name not in names:
            continue
        used.add(name)
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", selector):
            if label not in names[name] | TARGET_LABELS:
                wrong.append(f"{name} has no label {label}")
    labels = set().union(*(names[name] for name in used)) | TARGET_LABELS
    for group in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", query):
        wrong += [
            f"no metric here has the label {label}"
            for label in re.findall(r"\w+", group)
            if label not in labels
        ]
    unknown = {
        word
        for word in re.findall(r"(?<![\w$\"./])[a-z]\w*_\w+", re.sub(r"\"[^\"]*\"", "", query))
        if word not in names and word not in _WORDS and word not in labels
    }
    wrong += [f"{word} is no metric" for word in sorted(unknown)]
    if not used:
        wrong.append("it asks for no metric")
    return wrong


def _stripped(query: str) -> str:
    return re.sub(r"\b(?:by|on)\s*\([^)]*\)", "", query)


def queries_of(dashboard: Path) -> list[str]:
    panels = json.loads(dashboard.read_text(encoding="utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def test_the_page_lists_every_metric_as_it_is() -> None:
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in PAGE.splitlines()
        if line.startswith("| `htfi_")
    ]
    assert rows == [
        (f"`{spec.name}`", spec.kind.value, spec.source.value, ", ".join(spec.labels), spec.help)
        for spec in METRICS
    ]


def test_the_page_lists_every_event_of_the_log() -> None:
    for event in LogEvent:
        assert f"`{event.value}`" in PAGE, event
    assert len(LogEvent) > 5


def test_a_query_that_asks_for_what_is_not_there_is_found() -> None:
    assert check_query('sum by (outcome) (rate(htfi_decisions_total{job="a"}[5m]))') == []
    assert check_query("rate(htfi_decision_total[5m])") == [
        "htfi_decision_total is no metric",
        "it asks for no metric",
    ]
    assert check_query('htfi_decisions_total{stage="x"}') == ["htfi_decisions_total has no label stage"]
    assert check_query("sum by (rung) (htfi_decisions_total)") == ["no metric here has the label rung"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_exists_and_says_what_to_do(rule: dict[str, Any]) -> None:
    assert check_query(rule["expr"]) == []
    told = rule["annotations"]
    assert set(told) == {"summary", "description", "runbook_url"}
    assert all(told.values())
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert told["runbook_url"] == f"docs/telemetry.md#{rule['alert'].lower()}"
    _, heading, rest = PAGE.partition(f"\n### {rule['alert']}\n")
    assert heading
    assert len(rest.partition("\n###")[0]) > 80


def test_the_runbook_has_no_alert_that_is_gone() -> None:
    headings = re.findall(r"^### (\w+)$", PAGE.partition("## Runbook")[2], re.MULTILINE)
    assert headings == [rule["alert"] for rule in RULES]


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda file: file.stem)
def test_a_dashboard_asks_for_what_exists(dashboard: Path) -> None:
    queries = queries_of(dashboard)
    assert len(queries) > 5
    assert [(query, wrong) for query in queries if (wrong := check_query(query))] == []


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda file: file.stem)
def test_a_dashboards_panels_have_titles_units_and_places_of_their_own(dashboard: Path) -> None:
    made = json.loads(dashboard.read_text(encoding="utf-8"))
    assert made["uid"] == dashboard.stem
    assert made["title"].startswith("HTFI: ")
    panels = made["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    shown = [panel for panel in panels if panel["type"] != "row"]
    assert len({panel["title"] for panel in shown}) == len(shown) > 5
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not own & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        cells |= own
    for panel in shown:
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["datasource"]["uid"] == "${datasource}"
        assert all(target["legendFormat"] for target in panel["targets"])


def test_every_metric_of_a_process_is_on_a_dashboard_or_in_an_alert() -> None:
    asked = " ".join(
        [*(rule["expr"] for rule in RULES), *(each for file in DASHBOARDS for each in queries_of(file))]
    )
    absent = [spec.name for spec in METRICS if spec.name not in asked]
    assert absent == []
