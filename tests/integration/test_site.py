"""The documentation site as `make docs` builds it, looked at in a browser without a network."""

import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from chromium import CHROMIUM, Chromium

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
PAGES = (
    "index.html",
    "library.html",
    "names/forecast.html",
    "settings.html",
    "notebooks/01_first_forecast.html",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (find_spec("mkdocs") and CHROMIUM), reason="needs Chromium and `make docs`"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    command = [sys.executable, "docs/site/make.py", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with Chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_not_scroll_sideways(browser, page, width):
    browser.open(SITE / page, width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelector('h1').textContent.length") > 3
    assert browser.errors == []


def test_search_finds_a_page_without_a_server(browser):
    browser.open(SITE / "index.html", 1280)
    browser.run("document.querySelector('#__search').click()")
    browser.run(
        "(() => { const field = document.querySelector('.md-search__input'); field.value = 'quarantine';"
        "field.dispatchEvent(new KeyboardEvent('keyup', { bubbles: true })); })()"
    )
    num, tries = 0, 0
    while not num and tries < 100:
        time.sleep(0.1)
        num, tries = browser.run("document.querySelectorAll('.md-search-result__item').length"), tries + 1
    assert num >= 5
