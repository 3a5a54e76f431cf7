"""The live page of `htfi serve` in a real Chromium: what a user does there, and what no string from outside may do."""

import hashlib
import json
import math
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import htfi
from chromium import CHROMIUM, Chromium
from service_process import ServiceProcess

ROOT = Path(__file__).parents[2]
VISITS = count()  # each visit loads the page anew
HOSTILE = "<img src=x onerror=document.title='owned'>"
TYPE = """((text) => {
  const input = document.querySelector('#what-if-text');
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(input, text);
  input.dispatchEvent(new Event('input', {bubbles: true}));
})"""


def bars(first: int, last: int) -> list[dict[str, object]]:
    return [
        {
            "date": f"2024-{1 + day // 28:02}-{1 + day % 28:02}",
            "symbol": symbol,
            "close": round(start * math.exp(0.01 * ((day * step) % 11 - 5)), 4),
        }
        for day in range(first, last)
        for symbol, start, step in (("ACME", 100.0, 7), ("EUR/USD", 1.1, 5), (HOSTILE, 20.0, 3))
    ]


def test_built_page_is_of_the_sources_that_are_there() -> None:
    lines = (ROOT / "web" / "sources.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 10
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((ROOT / "web" / name).read_bytes()).hexdigest() == digest, (
            f"web/{name} was changed: run `npm run build` in web/"
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def run(folder: Path) -> Iterator[htfi.Run]:
    with htfi.open_run(folder, interval="1d", models=None) as opened:
        list(opened.feed(bars(0, 60)))
    with htfi.open_run(
        folder, interval="1d", models=None
    ) as opened:  # what-if reads the state that a run leaves
        yield opened


@pytest.fixture(scope="module")
def service(folder: Path, run: htfi.Run) -> Iterator[ServiceProcess]:
    with ServiceProcess("--follow", str(folder)) as started:
        started.wait_for(run.num_decisions)
        yield started


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    assert CHROMIUM, "install chromium: the page is tested in a real browser"
    with Chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def page(browser: Chromium, service: ServiceProcess) -> Chromium:
    browser.errors.clear()
    browser.open(f"{service.url}/?{next(VISITS)}", 1280)
    browser.wait_for("document.querySelector('.chart canvas') !== null")
    browser.wait_for("document.querySelectorAll('.decisions li').length > 0")
    return browser


def choose(page: Chromium, series: str) -> None:
    is_it = f"(one) => one.textContent.startsWith({json.dumps(series)})"
    page.run(f"[...document.querySelectorAll('nav.series a')].find({is_it}).click()")
    page.wait_for(f"document.querySelector('article h2')?.textContent.startsWith({json.dumps(series)})")


def test_newest_forecast_is_on_the_page(page: Chromium, service: ServiceProcess) -> None:
    choose(page, "ACME/1d")
    newest = service.client.get("/v1/forecasts/ACME/1d").json()
    shown = page.run("document.querySelector('article').innerText")
    assert newest["rationale"] in shown
    assert f"{newest['horizons'][0]['low']:,.2f}" in shown
    assert page.errors == []


def test_new_decision_comes_to_the_page_by_itself(page: Chromium, run: htfi.Run) -> None:
    choose(page, "ACME/1d")
    before = page.run("document.querySelector('article').innerText")
    list(run.feed(bars(60, 62)))
    page.wait_for(f"document.querySelector('article').innerText !== {json.dumps(before)}")
    page.wait_for(f"document.querySelector('.decisions a').textContent === '{run.num_decisions - 1}'")
    assert page.errors == []


def test_what_if_is_answered_while_one_types(page: Chromium) -> None:
    choose(page, "ACME/1d")
    page.run(f"{TYPE}('ACME -5%')")
    page.wait_for("document.querySelector('tr.after') !== null")
    after = page.run("[...document.querySelectorAll('tr.after td')].map((one) => one.textContent)")
    assert after[1].startswith("−5")
    assert page.run("document.querySelector('.legend .asked') !== null")
    page.run(f"{TYPE}('')")
    page.wait_for("document.querySelector('tr.after') === null")


def test_proof_is_checked_in_the_browser(page: Chromium) -> None:
    choose(page, "EUR/USD/1d")
    page.run("document.querySelector('section[aria-labelledby=record] button').click()")
    words = "document.querySelector('section[aria-labelledby=record] [role=status]').textContent"
    page.wait_for(f"{words}.includes('the hashes lead to it')")
    assert "Its signature holds." in page.run(words)


def test_proof_of_another_entry_is_refused_in_the_browser(page: Chromium) -> None:
    choose(page, "ACME/1d")
    page.run("""(() => { const ask = window.fetch; window.fetch = async (path, ...rest) => {
      const answer = await ask(path, ...rest);
      if (!String(path).endsWith('/proof')) return answer;
      const body = await answer.json();
      return new Response(JSON.stringify({...body, entry: btoa(atob(body.entry) + 'x')}));
    }; })()""")
    page.run("document.querySelector('section[aria-labelledby=record] button').click()")
    words = "document.querySelector('section[aria-labelledby=record] [role=status]')"
    page.wait_for(f"{words}.textContent.includes('does not hold')")
    assert page.run(f"{words}.className") == "wrong"


def test_text_from_outside_is_shown_and_does_nothing(page: Chromium) -> None:
    choose(page, HOSTILE)
    assert HOSTILE in page.run("document.querySelector('article').innerText")
    assert page.run("document.title") == "HTFI"
    assert page.run("document.querySelector('img') === null")


def test_page_asks_nothing_of_others_and_runs_no_other_script(
    page: Chromium, service: ServiceProcess
) -> None:
    names = page.run("performance.getEntriesByType('resource').map((one) => one.name)")
    assert names
    assert all(name.startswith(service.url) for name in names)
    policy = service.client.get("/").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    page.run(
        "(() => { const one = document.createElement('script'); one.textContent = 'window.ran = 1';"
        " document.body.append(one); })()"
    )
    assert page.run("window.ran === undefined")


@pytest.mark.parametrize("width", [320, 390, 800, 1400])
def test_page_fits_its_window(browser: Chromium, service: ServiceProcess, width: int) -> None:
    browser.open(f"{service.url}/?{next(VISITS)}", width)
    browser.wait_for("document.querySelector('.chart canvas') !== null")
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_everything_can_be_reached_by_keyboard_and_has_a_name(page: Chromium) -> None:
    nameless = page.run(
        """[...document.querySelectorAll('button, a, input, [tabindex]')].filter((one) => {
          const label = one.id && document.querySelector(`label[for=${one.id}]`);
          return one.tabIndex < 0 || !(one.textContent.trim() || one.ariaLabel || label);
        }).map((one) => one.outerHTML)"""
    )
    assert nameless == []
    assert page.run("document.documentElement.lang") == "en"


@pytest.mark.slow
def test_service_that_went_away_is_said_and_found_again(folder: Path, browser: Chromium) -> None:
    with ServiceProcess("--follow", str(folder)) as first:
        port = first.port
        browser.open(f"{first.url}/?{next(VISITS)}", 1280)
        browser.wait_for("document.querySelector('.chart canvas') !== null")
        first.end()
        browser.wait_for("document.querySelector('header p').className === 'wrong'")
        assert "connecting again" in browser.run("document.querySelector('header p').textContent")
    with ServiceProcess("--follow", str(folder), port=port):
        browser.wait_for("document.querySelector('header p').className !== 'wrong'")
        assert "The run" in browser.run("document.querySelector('header p').textContent")
