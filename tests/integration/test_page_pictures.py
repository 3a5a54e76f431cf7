"""The page looks as it did: small pictures of it beside those in tests/data/page. HTFI_PICTURES=1 makes them anew."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from chromium import CHROMIUM
from page_browser import DESKTOP, PHONE, browsers, page_of
from page_pictures import PICTURES, apart, has_our_fonts, small_picture
from page_run import record_forecasts
from service_process import ServiceProcess

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "install chromium: the page is tested in a real browser"
    with browsers() as started:
        yield started


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = record_forecasts(tmp_path_factory.mktemp("pictures") / "run")
    with ServiceProcess("--follow", str(folder)) as started:
        started.wait_for(1)
        yield started


@pytest.fixture
def blank(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()


@pytest.mark.parametrize(
    ("name", "view", "size", "is_dark"),
    [
        ("forecasts", "", DESKTOP, False),
        ("forecasts-dark", "", DESKTOP, True),
        ("forecasts-phone", "", PHONE, False),
        ("bands", "/bands", DESKTOP, False),
    ],
)
def test_page_looks_as_it_did(
    browser: Browser,
    service: ServiceProcess,
    blank: Page,
    name: str,
    view: str,
    size: tuple[int, int],
    is_dark: bool,
) -> None:
    with page_of(browser, f"{service.url}/#{view}", size=size, is_dark=is_dark) as watched:
        page, file = watched.page, PICTURES / f"{name}.png"
        expect(page.locator("main h2").first).to_be_visible()
        expect(page.get_by_text("The run has ended.")).to_be_visible()
        expect(page.get_by_text("Reading …")).to_have_count(0)
        page.wait_for_timeout(500)
        shown = small_picture(page, blank)
        if os.environ.get("HTFI_PICTURES"):
            file.write_bytes(shown)
        if not has_our_fonts(page):
            pytest.skip("the fonts of this machine are not those of the pictures")
        found = apart(shown, file.read_bytes(), blank)
        assert found.mean < 1.5
        assert found.far < 0.005


def test_pictures_of_two_views_are_apart(blank: Page) -> None:
    one, other = ((PICTURES / f"{name}.png").read_bytes() for name in ("forecasts", "bands"))
    found = apart(one, other, blank)
    assert found.mean > 3
    assert found.far > 0.01
