"""What people do on the live page, in a real Chromium under Playwright."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import htfi
from chromium import CHROMIUM
from htfi.adapters.stores.admissions import read_admissions
from htfi.adapters.stores.control_folder import read_requests
from htfi.governance.control.requests import ReenableRequest, StopRequest
from htfi.tenancy.config import SERVICE_FILE
from htfi.wiring.approvals import read_approvals, waiting_answers
from page_browser import PHONE, WatchedPage, browsers, page_of, violations
from page_run import (
    BEATS,
    HOSTILE,
    daily_bars,
    leave_for_people,
    record_forecasts,
    record_news,
    record_orders,
)
from service_process import ServiceProcess
from tenant_service import issue, serve_tenants, service_command


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "install chromium: the page is tested in a real browser"
    with browsers() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return leave_for_people(record_orders(tmp_path_factory.mktemp("page") / "run"))


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess("--follow", str(folder)) as started:
        started.wait_for(1)
        yield started


@pytest.fixture
def watched(browser: Browser, service: ServiceProcess) -> Iterator[WatchedPage]:
    with page_of(browser, f"{service.url}/") as found:
        yield found


@pytest.fixture
def page(watched: WatchedPage) -> Page:
    return watched.page


def go(page: Page, view: str) -> None:
    page.get_by_role("navigation", name="Views").get_by_role("link", name=view).click()


def act(page: Page, button: str, *, why: str = "checked", confirm: str = "") -> None:
    """Fill in the open dialog and send it; the page then says what came of it."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your name").fill("Ann Lee")
    dialog.get_by_label("Reason").fill(why)
    if confirm:
        expect(dialog.get_by_role("button", name=button)).to_be_disabled()
        dialog.get_by_label("to confirm").fill(confirm)
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog).to_have_count(0)


def test_decision_is_approved_with_what_was_seen(page: Page, folder: Path) -> None:
    go(page, "People")
    card = page.get_by_role("article", name="Question 1")
    expect(card).to_contain_text("AAA falls by 5%")
    expect(card).to_contain_text("<img src=x onerror=document.title='owned'> \\u{202e}owned\\u{202c}")
    assert violations(page) == []
    card.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("dialog")).to_contain_text("Digest of this text")
    act(page, "Approve")
    expect(page.locator(".said")).to_contain_text("the run has ended and takes it when it resumes")
    expect(card).to_contain_text("1 answer the run has not taken yet")
    (left,) = waiting_answers(folder)
    assert (left.by, left.why, left.answer.value) == ("Ann Lee", "checked", "approve")


def test_decision_is_handed_on_and_acknowledged(page: Page, folder: Path) -> None:
    go(page, "People")
    card = page.get_by_role("article", name="Question 1")
    digest = read_approvals(folder)["AAA/1d@2010-03-01T21:00:00Z"].state.question.digest
    card.get_by_role("button", name="Delegate").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your name").fill("Ann Lee")
    dialog.get_by_label("Reason").fill("her desk")
    expect(dialog.get_by_role("button", name="Delegate")).to_be_disabled()
    assert violations(page) == []
    dialog.get_by_label("To whom").fill("Bo Chan")
    dialog.get_by_role("button", name="Delegate").click()
    expect(dialog).to_have_count(0)
    expect(page.locator(".said")).to_contain_text("the run has ended and takes it when it resumes")
    card.get_by_role("button", name="Acknowledge").click()
    expect(dialog).to_contain_text("you have seen this text and have not decided yet")
    expect(dialog.get_by_label("Reason")).to_have_count(0)
    dialog.get_by_label("Your name").fill("Cy Day")
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(dialog).to_have_count(0)
    left = [one for one in waiting_answers(folder) if one.by != "Ann Lee" or one.answer.value == "delegate"]
    assert [(one.answer.value, one.by, one.to, one.why, one.seen) for one in left] == [
        ("delegate", "Ann Lee", "Bo Chan", "her desk", digest),
        ("seen", "Cy Day", "", "", digest),
    ]


def test_news_is_admitted_from_quarantine_and_shown_as_text(page: Page, folder: Path) -> None:
    go(page, "People")
    card = page.get_by_role("article", name="Item 1")
    expect(card).to_contain_text("direction: 1 runs were forced into another drawing order")
    card.get_by_text("As it came").click()
    expect(card).to_contain_text("<img src=x onerror=document.title='owned'>")
    card.get_by_role("button", name="Admit").click()
    act(page, "Admit", why=HOSTILE)
    expect(card).to_contain_text("Admitted; the run has not taken it yet.")
    assert [(one.by, one.why) for one in read_admissions(folder)[0]] == [
        ("Ann Lee", "<img src=x onerror=document.title='owned'> owned")  # without the characters that steer
    ]
    assert page.title() == "People – HTFI"
    assert page.locator("img").count() == 0


def test_stop_is_confirmed_and_ended_again(page: Page, folder: Path) -> None:
    stop = page.get_by_role("button", name="Stop …")
    stop.click()
    expect(page.get_by_label("Your name")).to_be_focused()
    page.keyboard.press("Escape")
    expect(stop).to_be_focused()
    stop.click()
    act(page, "Stop releases", why="drill", confirm="stop")
    go(page, "People")
    expect(page.get_by_text("Asked, and not taken by the run yet: stop")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    act(page, "Close the breaker", why="a bad print")
    asked = [
        one for one in read_requests(folder / "control")[0] if isinstance(one, StopRequest | ReenableRequest)
    ]
    assert [(type(one), one.scope, one.by, one.why) for one in asked] == [
        (StopRequest, "firm", "Ann Lee", "drill"),
        (ReenableRequest, "series:BBB", "Ann Lee", "a bad print"),
    ]


def test_orders_positions_nodes_and_bands_are_those_of_the_routes(
    page: Page, service: ServiceProcess
) -> None:
    newest = service.client.get("/v1/orders").json()["items"][0]
    go(page, "Orders")
    row = page.get_by_role("group", name="Newest orders").get_by_role("row").nth(1)
    expect(row).to_contain_text(newest["order"])
    expect(page.get_by_role("group", name="Positions").get_by_role("row")).to_have_count(3)
    expect(page.get_by_role("group", name="Costs by instrument")).to_contain_text("AAA")
    go(page, "Nodes")
    expect(page.get_by_role("group", name="Machines")).to_contain_text("this service")
    go(page, "Bands")
    expect(page.get_by_role("group", name="Prices inside")).to_contain_text(re.compile(r"all\d+80\d"))
    assert page.url.endswith("/#/bands")


@pytest.mark.slow
def test_key_signs_in_and_out_and_a_wrong_or_ended_one_is_said(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / SERVICE_FILE).write_text('[tenants.acme]\nrun = "acme"\n', encoding="utf-8")
    record_forecasts(tmp_path / "acme", 30)
    key, key_id = issue(tmp_path, "acme", "Ann's notebook", "read,act")
    with serve_tenants(tmp_path) as service, page_of(browser, f"{service.url}/") as watched:
        page = watched.page
        field = page.get_by_label("Key")
        expect(field).to_be_focused()
        field.fill(key[:-1] + ("a" if key[-1] != "a" else "b"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("the key is not known, has expired or was revoked")
        field.fill(key)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="AAA/1d")).to_be_visible()
        assert key not in page.content()
        assert page.evaluate("document.cookie") == ""
        page.get_by_role("button", name="Stop …").click()
        expect(page.get_by_role("dialog")).to_contain_text("Ann's notebook, as the key is called")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("alert")).to_contain_text("You are signed out.")
        page.reload()
        field.fill(key)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="AAA/1d")).to_be_visible()
        service_command(tmp_path, "keys", "revoke", "acme", key_id)
        expect(page.get_by_role("alert")).to_contain_text("The session has ended, or its key was revoked")
        watched.errors.clear()  # Chromium notes the answers 401


@pytest.mark.slow
def test_where_people_sign_the_page_says_how(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("cedarpy")
    from htfi.adapters.keys.ed25519 import create_key, load_key
    from htfi.governance.authorisation import AccessAction
    from htfi.governance.people import RequestStatement, sign_statement
    from htfi.wiring.authorisation import run_key

    run, governance = leave_for_people(record_forecasts(tmp_path / "run")), tmp_path / "G"
    governance.mkdir()
    key = create_key(tmp_path / "ann.key", "example.com/ann")
    (governance / "people.toml").write_text(
        f'[[people]]\nname = "ann"\nkey = "{key.verifier_key}"\nroles = ["approver"]\ndesks = []\n'
    )
    (decision,) = read_approvals(run)
    statement = RequestStatement(
        AccessAction.APPROVE, f"approve:{decision}", run_key(run), time.time_ns(), "checked",
        read_approvals(run)[decision].state.question.digest,
    )  # fmt: skip
    signed = sign_statement(statement, key.verifier_key, load_key(tmp_path / "ann.key"))
    with (
        ServiceProcess("--follow", str(run), "--governance", str(governance)) as service,
        page_of(browser, f"{service.url}/#/people") as watched,
    ):
        page = watched.page
        page.get_by_role("button", name="Approve").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("Command")).to_contain_text("htfi approvals approve RUN 1 --seen")
        dialog.get_by_label("Signed request").fill(signed)
        dialog.get_by_label("Reason").fill("checked")
        dialog.get_by_role("button", name="Approve").click()
        expect(page.locator(".said, [role=alert]").filter(has_text=re.compile("run|ann"))).to_be_visible()
        assert [one.signed for one in waiting_answers(run)] == [signed]


@pytest.mark.slow
def test_news_is_handed_in_and_known_again(browser: Browser, tmp_path: Path) -> None:
    with (
        ServiceProcess("--follow", str(record_forecasts(tmp_path / "run"))) as service,
        page_of(browser, f"{service.url}/#/news") as watched,
    ):
        page = watched.page
        page.get_by_label("Headline").fill(f"AAA cuts its outlook {HOSTILE[:20]}")
        page.get_by_label("Symbols").fill("AAA, BBB")
        page.get_by_role("button", name="Hand in").click()
        expect(page.locator(".said")).to_contain_text("Accepted; the run has ended")
        card = page.get_by_role("article", name="Item 1")
        expect(card).to_contain_text("waiting · AAA, BBB")
        expect(card).to_contain_text("<img src=x onerror")
        (posted,) = service.client.get("/v1/news").json()["items"]
        assert (posted["status"], posted["symbols"]) == ("waiting", ["AAA", "BBB"])


@pytest.mark.slow
def test_words_of_the_news_that_counted_are_marked_and_text_stays_text(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        ServiceProcess("--follow", str(record_news(tmp_path / "run"))) as service,
        page_of(browser, f"{service.url}/") as watched,
    ):
        page = watched.page
        page.get_by_text("What the news did").click()
        quoted = page.locator(".effect blockquote").filter(has_text=BEATS)
        expect(quoted.locator("mark")).to_have_text(["AAA", "beats estimates", "$1.40", "$1.35"])
        expect(quoted.locator("mark.side")).to_have_attribute("title", "above what was expected")
        expect(quoted.get_by_role("list", name="Words that counted")).to_contain_text(
            "$1.35: figure: expected"
        )
        raised = page.locator(".effect blockquote").filter(has_text="profit outlook")
        expect(raised.locator("mark")).to_have_text(["AAA", "raises its profit outlook"])
        assert violations(page) == []
        news = re.compile(r"/v1/decisions/\d+/news$")
        hostile = {"id": "n1", "source": HOSTILE, "available_at": "2010-02-09T22:00:00Z", "headline": HOSTILE}
        phrase = {"start": 1, "end": 20, "kind": "side", "why": HOSTILE}
        more = {"phrases": [phrase], "is_cited": True, "reading": HOSTILE}
        page.route(news, lambda route: route.fulfill(json={"index": 1, "items": [hostile | more]}))
        page.reload()
        page.get_by_text("What the news did").click()
        expect(page.locator(".effect mark")).to_have_text("img src=x onerror=d")
        expect(page.locator(".effect blockquote")).to_contain_text(HOSTILE)
        assert page.locator("img").count() == 0
        assert "owned" not in page.title()


@pytest.mark.slow
def test_series_reasons_what_if_and_proof(browser: Browser, tmp_path: Path) -> None:
    with (
        ServiceProcess("--follow", str(record_forecasts(tmp_path / "run"))) as service,
        page_of(browser, f"{service.url}/") as watched,
    ):
        page = watched.page
        page.get_by_role("navigation", name="Series").get_by_role("link", name="BBB/1d").click()
        expect(page.get_by_role("heading", name="BBB/1d")).to_be_visible()
        assert page.url.endswith("#BBB%2F1d")
        page.get_by_text("What the news did").click()
        expect(page.locator("details.effect li").first).to_be_visible()
        page.get_by_label("A headline, or a shock").fill("BBB -5%")
        expect(page.locator("tr.after td").nth(1)).to_contain_text("−5")
        page.get_by_role("button", name="in this browser").click()
        expect(page.get_by_text("the hashes lead to it")).to_contain_text("Its signature holds.")
        go(page, "Nodes")
        go(page, "Forecasts")
        expect(page.get_by_role("heading", name="BBB/1d")).to_be_visible()


@pytest.mark.slow
def test_stream_resumes_after_the_service_was_restarted(browser: Browser, tmp_path: Path) -> None:
    folder = record_forecasts(tmp_path / "run")
    with (
        htfi.open_run(folder, interval="1d", models=None) as run,
        ServiceProcess("--follow", str(folder)) as first,
        page_of(browser, f"{first.url}/", size=PHONE) as watched,
    ):
        page = watched.page
        expect(page.locator(".decisions li").first).to_be_visible()
        first.end()
        expect(page.get_by_text("connecting again")).to_be_visible()
        list(run.feed(daily_bars(60, 64)))
        with ServiceProcess("--follow", str(folder), port=first.port):
            newest = page.locator(".decisions li a").first
            expect(newest).to_have_text(str(run.num_decisions - 1))
            shown = [int(one) for one in page.locator(".decisions li a").all_text_contents()]
            assert shown == sorted(set(shown), reverse=True)
            assert shown[0] - shown[-1] == len(shown) - 1
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


@pytest.mark.slow
def test_run_that_goes_on_is_stopped_and_enabled_again(browser: Browser, tmp_path: Path) -> None:
    folder = record_forecasts(tmp_path / "run")
    with (
        htfi.open_run(folder, interval="1d", models=None) as run,
        ServiceProcess("--follow", str(folder)) as service,
        page_of(browser, f"{service.url}/#/people") as watched,
    ):
        page = watched.page
        verdict = page.locator(".decisions li").first
        page.get_by_role("button", name="Stop …").click()
        act(page, "Stop releases", why="quotes look wrong", confirm="stop")
        list(run.feed(daily_bars(60, 62)))
        expect(page.get_by_role("link", name="Releases are stopped")).to_be_visible()
        expect(page.get_by_role("region", name="Releases")).to_contain_text("Stopped: firm, by Ann Lee")
        go(page, "Forecasts")
        expect(verdict).to_contain_text("withheld")
        page.get_by_role("link", name="Releases are stopped").click()
        page.get_by_role("button", name="Enable again").click()
        act(page, "Enable again", why="they are right")
        list(run.feed(daily_bars(62, 64)))
        expect(page.get_by_role("region", name="Releases")).to_contain_text("Nothing holds them back.")
        go(page, "Forecasts")
        expect(verdict).to_contain_text("release")
        control = service.client.get("/v1/control").json()
        assert (control["is_clear"], control["waiting"]) == (True, [])
