"""The documentation site: each page is written and has its place, links lead somewhere, nothing is from elsewhere."""

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

import htfi
from htfi_eval.better import BETTER

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))

import diagrams  # noqa: E402 - scripts beside the pages
import pages  # noqa: E402
from notebook import notebook_page  # noqa: E402
from shipped import LoadsFromElsewhere, check_site, loaded_addresses  # noqa: E402

NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, str]:
    """The text of each page, by its path."""
    folder = tmp_path_factory.mktemp("pages")
    notebooks = {one.name: f"# {one.stem}\n" for one in pages.NOTEBOOKS.glob("*.ipynb")}
    return {
        name: (folder / name).read_text(encoding="utf-8")
        for name in pages.write_pages(folder, htfi.__all__, notebooks)
    }


def test_every_page_has_one_place_in_the_navigation(written):
    named = re.findall(r"(\S+\.md)$", NAVIGATION, re.MULTILINE)
    assert sorted(named) == sorted(name for name in written if not name.startswith("files/"))
    assert len(named) > 80


def test_every_command_and_every_public_name_is_on_a_page(written):
    assert "## htfi ledger verify" in written["commands/ledger.md"]
    assert "`--recompute`" in written["commands/ledger.md"]
    stated = [
        name for text in written.values() for name in re.findall(r"^::: htfi\.(\w+)$", text, re.MULTILINE)
    ]
    assert sorted(stated) == htfi.__all__


def test_links_lead_to_pages_of_the_site(written):
    assert "](library.md)" in written["index.md"]
    assert "](notebooks/01_first_forecast.md)" in written["library.md"]
    assert "](files/src/htfi/models/CARD.md)" in written["dependencies.md"]
    assert written["files/examples/read_record.py.md"].startswith("# read_record.py\n\n```python\n")


def test_a_link_to_nothing_is_named(tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text("[a](docs/gone.md)\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    with pytest.raises(pages.BrokenLink, match=r"README\.md: there is no docs/gone\.md"):
        pages.write_pages(tmp_path / "out", htfi.__all__, {})


def test_a_public_name_without_a_page_is_named():
    with pytest.raises(ValueError, match=r"differ: another$"):
        list(pages.name_pages([*htfi.__all__, "another"]))


def test_every_diagram_is_drawn_from_its_text():
    wanted = {name: diagrams.drawn_from(text) for name, text in diagrams.diagram_sources().items()}
    drawn = {
        file.stem: file.read_text(encoding="utf-8").partition("\n")[0].strip("<>!- ")
        for file in diagrams.DIAGRAMS.glob("*.svg")
    }
    assert drawn == wanted, "draw them anew: docs/pictures/diagrams.py"
    assert len(wanted) > 6


def test_what_a_browser_would_load_from_elsewhere_is_found(tmp_path):
    page = (
        '<link rel="stylesheet" href="https://a.example/x.css"><link rel="canonical" href="https://b.example/">'
        '<a href="https://c.example/">c</a><img src="pictures/d.png"><script src="//e.example/f.js"></script>'
        "<style>p { background: url(https://g.example/h.png) }</style>"
    )
    assert loaded_addresses(page) == [
        "https://a.example/x.css",
        "//e.example/f.js",
        "https://g.example/h.png",
    ]
    (tmp_path / "index.html").write_text(page)
    with pytest.raises(LoadsFromElsewhere, match=r"index.html: //e\.example"):
        check_site(tmp_path)


async def shown_by(source: list[str], tmp_path: Path) -> str:
    cells = [{"cell_type": "code", "source": one} for one in source]
    file = tmp_path / "a.ipynb"
    file.write_text(json.dumps({"cells": cells}))
    return await notebook_page(file, runs=True)


def test_a_notebook_shows_what_its_cells_print_and_give(tmp_path):
    page = asyncio.run(shown_by(["x = 2\nprint('<one>')", "x + 1"], tmp_path))
    assert '<div class="output"><pre>&lt;one&gt;\n</pre></div>' in page
    assert '<div class="output"><pre>3</pre>\n</div>' in page


def test_the_page_of_metrics_names_each_of_a_benchmark_and_its_better_side():
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    stated: dict[str, str] = {}
    for line in text.partition("## Evaluations")[0].splitlines():
        cells = line.split("|")
        if line.startswith("|") and len(cells) == 6:
            stated |= dict.fromkeys(re.findall(r"`(\w+)`", cells[2]), cells[3].strip())
    known = {metric: side.value for metrics in BETTER.values() for metric, side in metrics.items()}
    assert known.items() <= stated.items()
    assert len(known) > 50
