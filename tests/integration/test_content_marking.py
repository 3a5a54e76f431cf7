"""Everything that commands write about decisions is marked for machines: JSON, lines, pages, tables and folders."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from archives import unpack
from htfi.adapters.stores.decision_table import is_marked
from htfi.apps.cli.main import cli
from htfi.domain.content_marking import FIELD, MARKING_FILE, content_marking
from htfi.domain.decision import Decision
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly

pytestmark = pytest.mark.usefixtures("models_opened_once")

ARCHIVE = Path(__file__).parents[1] / "data" / "ledgers" / "run-traced.tar.xz"
GENERATED, COMPUTED = content_marking(), content_marking(is_generated=False)
MARKED: dict[str, tuple[list[str], dict[str, object]]] = {
    "forecast": (["PRICES", "--json"], GENERATED),
    "news": (["Acme cuts its outlook", "--json", "-"], GENERATED),
    "scenario": (["NEW", "--shock", "ACME -5%", "--json", "-"], GENERATED),
    "ledger audit": (["RUN", "--json"], GENERATED),
    "ledger explain": (["RUN", "DECISION", "--json"], GENERATED),
    "audit fairness": (["RUN", "--groups", "GROUPS", "--json", "-"], COMPUTED),
    "mark verify": (["Shares of Acme fell", "--key", "KEY", "--json"], COMPUTED),
}
# What people or other sources wrote, proofs, and entries byte for byte: the file in the folder of a run marks these.
NOT_CONTENT = {
    "policy diff", "policy log", "policy show", "quarantine list", "quarantine show", "suspicion status",
    "approvals list", "approvals show", "ledger prove", "ledger show", "ledger readers",
    "orders list", "orders reconcile", "orders show", "orders positions",
    "service keys add", "service keys list", "service usage", "calendar check",
}  # fmt: skip
ELSEWHERE = {  # trials and fits take minutes, and are of the evaluation; costs need a run that traded
    "sandbox", "orders costs", "models fit",
}  # fmt: skip
PAGES = {
    "report": (["RUN", "--out", "PAGE"], True),
    "scenario": (["NEW", "--shock", "ACME -5%", "--html", "PAGE"], True),
    "audit fairness": (["RUN", "--groups", "GROUPS", "--html", "PAGE"], False),
}


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, set[str]]]:
    """Every command with its options, but those of other distributions."""
    if not isinstance(command, click.Group):
        yield name, {option for one in command.params for option in one.opts}
        return
    context = click.Context(command)
    for word in command.list_commands(context):
        found = command.get_command(context, word)
        if found is not None and word not in ("bench", "eval"):
            yield from commands(found, f"{name} {word}".strip())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("traced")
    unpack(ARCHIVE, parent)
    (parent / "groups.csv").write_text("symbol,region\nACME,a\nOMEGA,b\n")
    # A scenario goes on from a saved state, which is of one version.
    words = ["run", str(parent / "run-traced" / "prices.csv"), "--out", str(parent / "new")]
    assert CliRunner().invoke(cli, words, catch_exceptions=False).exit_code == 0
    return parent / "run-traced"


def first_reading(run: Path) -> Decision:
    """The first decision that a model read for, which costs few passes to explain."""
    log = open_ledger_readonly(run)
    try:
        return next(one for one in map(decode_entry, log.entries()) if one.view and one.view.trace)
    finally:
        log.close()


def invoke(run: Path, name: str, words: list[str], page: Path | None = None) -> str:
    places = {
        "RUN": run,
        "NEW": run.parent / "new",
        "PRICES": run / "prices.csv",
        "GROUPS": run.parent / "groups.csv",
        "KEY": run / "mark.key",
        "DECISION": first_reading(run).id,
        "PAGE": page,
    }
    given = [str(places.get(word, word)) for word in words]
    done = CliRunner().invoke(cli, [*name.split(), *given], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_command_with_json_is_tested_here_or_writes_no_content() -> None:
    with_json = {name for name, options in commands(cli) if "--json" in options}
    assert with_json == MARKED.keys() | NOT_CONTENT | ELSEWHERE


def test_every_command_with_a_page_is_tested_here() -> None:
    with_page = {name for name, options in commands(cli) if "--html" in options}
    assert with_page <= PAGES.keys() | ELSEWHERE


@pytest.mark.parametrize("name", MARKED)
def test_json_is_marked(run: Path, name: str) -> None:
    words, expected = MARKED[name]
    assert json.loads(invoke(run, name, words))[FIELD] == expected


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_marked(run: Path, name: str, tmp_path: Path) -> None:
    words, is_generated = PAGES[name]
    page = tmp_path / "page.html"
    invoke(run, name, words, page)
    head = page.read_text(encoding="utf-8").partition("</head>")[0]
    kind = content_marking(is_generated=is_generated)["digital_source_type"]
    assert f'<meta name="artificially-generated" content="{str(is_generated).lower()}">' in head
    assert f'<meta name="digital-source-type" content="{kind}">' in head
    assert '<meta name="generator" content="htfi">' in head


def test_a_run_and_an_export_are_marked(run: Path, tmp_path: Path) -> None:
    """Lines of decisions are the ledger's, byte for byte, so a file beside them marks them."""
    files = [str(run / "prices.csv"), "--no-report", "--plain", "--out", str(tmp_path / "run")]
    assert CliRunner().invoke(cli, ["run", *files]).exit_code == 0
    invoke(run, "ledger export", [str(tmp_path / "run"), str(tmp_path / "export")])
    for folder, named in (("run", "decisions.jsonl"), ("export", "entries.jsonl")):
        body = json.loads((tmp_path / folder / MARKING_FILE).read_bytes())
        assert body.items() >= GENERATED.items()
        assert named in body["files"]
        assert "view.words" in body["fields"]
    assert is_marked(tmp_path / "run" / "decisions.parquet")
