"""Debian's Chromium under Playwright, for tests of the page: contexts that note what no page of ours may do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import Browser, Page, sync_playwright

from chromium import CHROMIUM

DESKTOP, PHONE = (1280, 900), (390, 844)
FLAGS = ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb", "--font-render-hinting=none"]
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
_NOTE_VIOLATIONS = """window.violations = [];
document.addEventListener('securitypolicyviolation', (event) =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sourceFile}`));"""


class WatchedPage:
    """A tab; `strays` are requests to others, `errors` exceptions and what the console complains of."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page, self.strays, self.errors = page, list[str](), list[str]()
        page.on(
            "request",
            lambda request: None if request.url.startswith(origin) else self.strays.append(request.url),
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.add_init_script(_NOTE_VIOLATIONS)

    def check(self) -> None:
        """That the page kept to its own origin, to its policy, and to its own errors."""
        assert self.strays == []
        assert self.errors == []
        assert self.page.evaluate("window.violations") == []


@contextmanager
def browsers() -> Iterator[Browser]:
    """One browser, headless."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(
    browser: Browser, url: str, *, is_dark: bool = False, size: tuple[int, int] = DESKTOP, **options: Any
) -> Iterator[WatchedPage]:
    """A tab in a context of its own at `url`, checked at its end."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if is_dark else "light",
        reduced_motion="reduce",
        **options,
    )
    context.set_default_timeout(15_000)
    try:
        watched = WatchedPage(context.new_page(), url.partition("#")[0])
        watched.page.goto(url)
        yield watched
        watched.check()
    finally:
        context.close()


def violations(page: Page) -> list[str]:
    """Of all of axe-core's rules, best practices too: the rule and where."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > 10
    return [f"{one['id']}: {node['html'][:160]}" for one in found["violations"] for node in one["nodes"]]
