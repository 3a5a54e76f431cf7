"""The page by axe-core: no violation on any view, light and dark, desktop and phone, and what it does by keyboard."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from chromium import CHROMIUM
from htfi.tenancy.config import SERVICE_FILE
from page_browser import DESKTOP, PHONE, browsers, page_of, violations
from page_run import leave_for_people, record_forecasts, record_orders
from service_process import ServiceProcess
from tenant_service import serve_tenants

pytestmark = pytest.mark.slow
VIEWS = ("", "/people", "/news", "/nodes", "/orders", "/bands")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "install chromium: the page is tested in a real browser"
    with browsers() as started:
        yield started


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = leave_for_people(record_orders(tmp_path_factory.mktemp("axe") / "run"))
    with ServiceProcess("--follow", str(folder)) as started:
        started.wait_for(1)
        yield started


def open_view(page: Page, url: str, view: str) -> None:
    page.goto(f"{url}/#{view}")
    expect(page.locator("main h2").first).to_be_visible()
    expect(page.locator("main table, main .quiet").first).to_be_visible()
    expect(page.get_by_text("Reading …")).to_have_count(0)


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_no_view_and_no_dialog_has_a_violation(
    browser: Browser, service: ServiceProcess, is_dark: bool, size: tuple[int, int]
) -> None:
    found: dict[str, list[str]] = {}
    with page_of(browser, f"{service.url}/", is_dark=is_dark, size=size) as watched:
        page = watched.page
        for view in VIEWS:
            open_view(page, service.url, view)
            found[view] = violations(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        open_view(page, service.url, "/people")
        for name in ("Stop …", "Approve", "Admit", "Close"):
            page.get_by_role("button", name=name).first.click()
            expect(page.get_by_role("dialog")).to_be_visible()
            found[name] = violations(page)
            page.keyboard.press("Escape")
    assert found == {key: [] for key in (*VIEWS, "Stop …", "Approve", "Admit", "Close")}


def test_sign_in_has_no_violation(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / SERVICE_FILE).write_text('[tenants.acme]\nrun = "acme"\n', encoding="utf-8")
    record_forecasts(tmp_path / "acme", 30)
    with serve_tenants(tmp_path) as service, page_of(browser, f"{service.url}/") as watched:
        expect(watched.page.get_by_label("Key")).to_be_focused()
        assert violations(watched.page) == []
        watched.errors.clear()


def test_focus_stays_in_a_dialog_and_goes_back(browser: Browser, service: ServiceProcess) -> None:
    with page_of(browser, f"{service.url}/#/people") as watched:
        page = watched.page
        opener = page.get_by_role("button", name="Deny")
        opener.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_be_visible()
        for _ in range(12):
            page.keyboard.press("Tab")
            assert page.evaluate(
                "document.activeElement === document.body || !!document.activeElement.closest('dialog')"
            )
        page.keyboard.press("Escape")
        expect(opener).to_be_focused()


def test_live_regions_are_few_and_silent_while_decisions_come(
    browser: Browser, service: ServiceProcess
) -> None:
    with page_of(browser, f"{service.url}/") as watched:
        page = watched.page
        expect(page.locator(".decisions li").first).to_be_visible()
        regions = "document.querySelectorAll('[role=status], [role=alert], [aria-live]')"
        assert page.evaluate(f"{regions}.length") <= 5
        assert page.evaluate(
            f"[...{regions}].every((one) => !one.querySelector('.decisions, .series, .chart'))"
        )
        assert page.evaluate("!document.querySelector('.decisions').closest('[role=status], [aria-live]')")
