"""What people ask of a run over HTTP is what the commands ask: the same files, the same record, once for a key."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastapi.testclient import TestClient
from test_approvals_command import DECISION, asked, folder_with
from test_trade_command import MadeOnce, say, write_prices

from htfi.adapters.keys.ed25519 import create_key, load_key
from htfi.adapters.stores.admissions import read_admissions
from htfi.adapters.stores.control_folder import read_requests
from htfi.adapters.stores.held_news import HELD_NEWS, HeldNewsFile
from htfi.apps.service.app import create_app
from htfi.domain.events import News
from htfi.domain.governance import BreakerState
from htfi.domain.orders import MassCancelRequest
from htfi.governance.authorisation import AccessAction
from htfi.governance.control.entries import BreakerMoved, StopCause, Stopped, encode_governance
from htfi.governance.control.requests import ReenableRequest, StopRequest
from htfi.governance.ledger.note import parse_note
from htfi.governance.people import RequestStatement, sign_statement
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.wiring.approvals import read_approvals, waiting_answers
from htfi.wiring.authorisation import run_key
from htfi.wiring.bundles import init_folder
from htfi.wiring.control import GovernanceLogFile
from htfi.wiring.ledger import create_signing_key
from htfi.wiring.order_record import order_events
from htfi.wiring.request_token import RequestToken
from htfi.wiring.service.answered_requests import MAX_KEYS, AnsweredRequests
from htfi.wiring.service.run_process import RunPlace
from htfi.wiring.trading import cancel_orders

START = 1_700_000_000 * 10**9
HOSTILE = "<script>alert(1)</script> Acme \u202eto\u202c soar"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of an ended run that asks about a decision, holds back an item, and was stopped."""
    folder = folder_with(asked(), tmp_path / "run")
    log = GovernanceLogFile(folder)
    stop = Stopped(START, 1, "series:SPX", "Ann", "bad prints", StopCause.COMMAND, "stop-1")
    trip = BreakerMoved(START, 1, "bands_left", "series:SPX", BreakerState.OPEN, 5.0, 3.0, "5 of 8 left")
    log.append_all([encode_governance(stop), encode_governance(trip)])
    log.close()
    held, item = HeldNewsFile(folder / HELD_NEWS), News(START, START, "wire", 1, "w1", HOSTILE, ("SPX",))
    held.hold(item, Sanitiser().screen(item))
    held.close()
    return folder


def client_of(folder: Path, governance: Path | None = None) -> TestClient:
    return TestClient(create_app({"": RunPlace(folder, governance)}), base_url="http://127.0.0.1")


@pytest.fixture
def client(run: Path) -> Iterator[TestClient]:
    with client_of(run) as found:
        yield found


def seen(run: Path) -> str:
    return read_approvals(run)[DECISION].state.question.digest[:8]


def test_stop_leaves_the_request_that_the_command_leaves(client: TestClient, run: Path) -> None:
    answer = client.post("/v1/stop", json={"by": "Ann Lee", "why": "drill", "scope": "series:ACME"})
    (request,), _ = read_requests(run / "control")
    assert isinstance(request, StopRequest)
    assert (request.scope, request.by, request.why) == ("series:ACME", "Ann Lee", "drill")
    assert answer.status_code == 202
    assert answer.json()["detail"] == (
        "stopped: series:ACME; the run has ended: it holds as soon as the run starts again"
    )
    assert [one["id"] for one in client.get("/v1/control").json()["waiting"]] == [request.id]


def test_stops_and_breakers_in_force_are_those_of_the_log(client: TestClient) -> None:
    control = client.get("/v1/control").json()
    assert [(one["scope"], one["by"], one["why"]) for one in control["stops"]] == [
        ("series:SPX", "Ann", "bad prints")
    ]
    (breaker,) = client.get("/v1/breakers").json()["items"]
    assert (breaker["breaker"], breaker["state"], breaker["statistic"]) == ("bands_left", "open", 5.0)
    assert control["open_breakers"] == [breaker]
    assert client.get("/v1/policy").json()["by"] == "settings"


def test_answer_of_a_listing_that_has_not_changed_is_not_sent_again(client: TestClient) -> None:
    first = client.get("/v1/control")
    again = client.get("/v1/control", headers={"If-None-Match": first.headers["etag"]})
    client.post("/v1/stop", json={"by": "Ann", "why": "drill"})
    changed = client.get("/v1/control", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, changed.status_code) == (304, b"", 200)


def test_approval_names_what_was_seen_and_is_left_for_the_run(client: TestClient, run: Path) -> None:
    (question,) = client.get("/v1/approvals").json()["items"]
    assert (question["number"], question["decision"], question["phase"]) == (1, DECISION, "asked")
    body = {"by": "Ann", "why": "checked", "seen": question["digest"][:8]}
    wrong = client.post("/v1/approvals/1/approve", json=body | {"seen": "0" * 8})
    answer = client.post("/v1/approvals/1/approve", json=body)
    assert (wrong.status_code, answer.status_code, answer.json()["step"]) == (422, 202, "approved")
    (left,) = waiting_answers(run)
    assert (left.by, left.why, left.seen) == ("Ann", "checked", question["digest"])
    assert client.get("/v1/approvals/1").json()["num_waiting_answers"] == 1
    assert client.get("/v1/approvals/7").status_code == 404


def test_quarantined_item_is_shown_as_data_and_admitted_once(client: TestClient, run: Path) -> None:
    listed = client.get("/v1/quarantine")
    (item,) = listed.json()["items"]
    assert listed.headers["content-type"] == "application/json"
    assert listed.headers["x-content-type-options"] == "nosniff"
    assert item["as_it_came"]["headline"] == HOSTILE
    assert "\u202e" not in item["headline"]
    assert item["findings"]
    body = {"by": "Ann", "why": "confirmed"}
    first = client.post("/v1/quarantine/1/admit", json=body)
    other = client.post("/v1/quarantine/1/admit", json=body | {"by": "Bo"})
    assert (first.status_code, other.status_code) == (202, 422)
    assert [one.by for one in read_admissions(run)[0]] == ["Ann"]
    assert client.get("/v1/quarantine/w1").json()["status"] == "asked"


def test_suspicion_is_cleared_once_for_a_key(client: TestClient, run: Path) -> None:
    headers = {"Idempotency-Key": '"k1"'}
    body = {"by": "Ann", "why": "our test", "symbol": "SPX"}
    first = client.post("/v1/suspicion/clear", json=body, headers=headers)
    again = client.post("/v1/suspicion/clear", json=body, headers=headers)
    assert (first.status_code, again.content) == (202, first.content)
    assert (again.headers["idempotency-replayed"], len(read_admissions(run)[0])) == ("true", 1)
    assert client.get("/v1/suspicion").json()["cleared"][0]["by"] == "Ann"


ACTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/stop", {"why": "drill", "by": "Ann"}),
    ("/v1/reenable", {"why": "repaired", "by": "Ann", "scope": "series:SPX"}),
    ("/v1/approvals/1/approve", {"why": "checked", "by": "Ann"}),
    ("/v1/approvals/1/acknowledge", {"by": "Ann"}),
    ("/v1/quarantine/1/admit", {"why": "confirmed", "by": "Ann"}),
    ("/v1/suspicion/clear", {"why": "our test", "by": "Ann"}),
)


def lose_answer(*_: object) -> None:
    """The service ends before its answer is kept."""


def left_behind(run: Path) -> int:
    return len(read_requests(run / "control")[0]) + len(read_admissions(run)[0])


@pytest.mark.parametrize(("path", "body"), ACTS)
def test_act_whose_answer_was_lost_is_done_once_when_it_is_asked_again(
    run: Path, path: str, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = body | ({"seen": seen(run)} if "approvals" in path else {})
    headers = {"Idempotency-Key": "k1"}
    with client_of(run) as client, monkeypatch.context() as patch:
        patch.setattr(AnsweredRequests, "answer", lose_answer)
        first = client.post(path, json=body, headers=headers)
    with client_of(run) as client:
        again = client.post(path, json=body, headers=headers)
        third = client.post(path, json=body, headers=headers)
    assert (first.status_code, again.status_code) == (202, 202)
    assert (again.content, third.content) == (first.content, again.content)
    assert ("idempotency-replayed" in again.headers, "idempotency-replayed" in third.headers) == (False, True)
    assert left_behind(run) == 1


def test_key_that_comes_with_another_request_is_refused(client: TestClient, run: Path) -> None:
    headers = {"Idempotency-Key": "k1"}
    client.post("/v1/stop", json={"by": "Ann", "why": "one"}, headers=headers)
    other = client.post("/v1/stop", json={"by": "Ann", "why": "two"}, headers=headers)
    elsewhere = client.post("/v1/reenable", json={"by": "Ann", "why": "one"}, headers=headers)
    malformed = client.post("/v1/stop", json={"by": "Ann", "why": "one"}, headers={"Idempotency-Key": "a b"})
    assert [one.status_code for one in (other, elsewhere, malformed)] == [422, 422, 422]
    assert left_behind(run) == 1


def test_refused_input_keeps_no_key(client: TestClient, run: Path) -> None:
    headers = {"Idempotency-Key": "k1"}
    wrong = client.post("/v1/stop", json={"by": "Ann", "why": "one", "scope": "moon"}, headers=headers)
    right = client.post("/v1/stop", json={"by": "Ann", "why": "one"}, headers=headers)
    assert (wrong.status_code, right.status_code, left_behind(run)) == (422, 202, 1)


def test_stop_needs_no_key_file_and_other_acts_say_what_is_wrong(run: Path) -> None:
    (run / "answered-requests.sqlite").mkdir()
    headers = {"Idempotency-Key": "k1"}
    with client_of(run) as client:
        stop = client.post("/v1/stop", json={"by": "Ann", "why": "fire"}, headers=headers)
        clear = client.post("/v1/suspicion/clear", json={"by": "Ann", "why": "test"}, headers=headers)
    assert (stop.status_code, clear.status_code, left_behind(run)) == (202, 503, 1)
    assert "answered-requests.sqlite" in clear.json()["detail"]


def test_names_of_the_system_and_bodies_of_another_type_are_refused(client: TestClient, run: Path) -> None:
    for body in (
        {"by": "governance log", "why": "x"},
        {"why": "x"},
        {"by": "Ann", "why": 5},
        ["Ann"],
        {"by": "A"},
    ):
        assert client.post("/v1/stop", json=body).status_code == 422
    text = client.post("/v1/stop", content=b'{"by":"Ann","why":"x"}', headers={"Content-Type": "text/plain"})
    charset = client.post(
        "/v1/stop", content=b"{}", headers={"Content-Type": "application/json; charset=utf-16"}
    )
    assert (text.status_code, charset.status_code, left_behind(run)) == (422, 422, 0)


@pytest.mark.parametrize("name", ["..%2f..%2fsettings", "%2e%2e", "a%00b", "-1", "1e9"])
def test_ids_name_no_files(client: TestClient, name: str) -> None:
    for path in (f"/v1/approvals/{name}", f"/v1/quarantine/{name}", f"/v1/orders/{name}"):
        assert client.get(path).status_code in (404, 422)


@pytest.fixture
def governance(tmp_path: Path) -> Path:
    pytest.importorskip("cedarpy")
    folder = tmp_path / "G"
    folder.mkdir()
    key = create_key(tmp_path / "ann.key", "example.com/ann")
    (folder / "people.toml").write_text(
        f'[[people]]\nname = "ann"\nkey = "{key.verifier_key}"\nroles = ["approver"]\ndesks = ["equities"]\n'
    )
    return folder


def test_where_people_sign_an_answer_counts_by_its_signature(
    run: Path, governance: Path, tmp_path: Path
) -> None:
    key, digest = load_key(tmp_path / "ann.key"), read_approvals(run)[DECISION].state.question.digest
    statement = RequestStatement(
        AccessAction.APPROVE, f"approve:{DECISION}", run_key(run), time.time_ns(), "checked", digest
    )
    body = {"seen": digest, "why": "checked"}
    signed = sign_statement(statement, key.verifier_key, key)
    old = sign_statement(msgspec.structs.replace(statement, at_ns=START), key.verifier_key, key)
    other = sign_statement(msgspec.structs.replace(statement, run="example.com/x"), key.verifier_key, key)
    with client_of(run, governance) as client:
        unsigned = client.post("/v1/approvals/1/approve", json=body | {"by": "ann"})
        late = client.post("/v1/approvals/1/approve", json=body | {"signed": old})
        broken = client.post("/v1/approvals/1/approve", json=body | {"signed": "no note"})
        left_before = left_behind(run)
        answer = client.post("/v1/approvals/1/approve", json=body | {"signed": signed})
        foreign = client.post("/v1/approvals/1/deny", json=body | {"signed": other})
    assert [one.status_code for one in (unsigned, late, broken, answer, foreign)] == [403, 403, 422, 202, 403]
    assert (left_before, answer.json()["by"], answer.json()["step"]) == (0, "ann", "approved")
    assert waiting_answers(run)[0].signed == signed


def test_keys_of_a_caller_are_bounded_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from htfi.wiring.service import answered_requests as module

    class Now:
        ns = START

        def now_ns(self) -> int:
            return self.ns

    now = Now()
    monkeypatch.setattr(module, "MAX_KEYS", 3)
    kept = AnsweredRequests(tmp_path, now)
    for number in range(3):
        kept.begin("a", str(number), "digest")
    with pytest.raises(module.TooManyKeys):
        kept.begin("a", "3", "digest")
    kept.begin("b", "3", "digest")
    with pytest.raises(module.RequestUnderWay):
        kept.begin("b", "3", "digest")
    now.ns += module.KEPT_NS + 1
    kept.begin("a", "3", "digest")
    kept.close()
    assert MAX_KEYS == 10_000


@pytest.fixture(scope="module")
def traded(made_once: MadeOnce) -> Path:
    def make(folder: Path) -> None:
        write_prices(folder / "prices.csv")
        say("trade", folder / "prices.csv", "--out", folder / "run", "--plain")

    return made_once("traded", make) / "run"


def test_orders_are_those_of_the_command_page_by_page(traded: Path) -> None:
    expected = [
        msgspec.json.decode(one)
        for one in say("orders", "list", traded, "--num", 9_999, "--json").splitlines()
    ]
    found: list[dict[str, Any]] = []
    with client_of(traded) as client:
        before: int | None = None
        while True:
            query = {"limit": 7} if before is None else {"limit": 7, "before": before}
            page = client.get("/v1/orders", params=query).json()
            found += page["items"]
            before = page["next"]
            if before is None:
                break
        one = client.get(f"/v1/orders/{found[0]['order']}").json()
        costs = client.get("/v1/costs", params={"by": "instrument"}).json()
        positions = client.get("/v1/positions").json()
        policy = client.get("/v1/policy").json()
    extra = {"number", "is_open"}
    assert [
        {key: value for key, value in row.items() if key not in extra} for row in reversed(found)
    ] == expected
    assert one["order"]["order"] == found[0]["order"]
    assert one["messages"][0]["kind"] == "new"
    assert [group["name"] for group in costs["groups"]] == ["AAA", "BBB"]
    assert {position["instrument"] for position in positions["items"]} == {"AAA", "BBB"}
    assert (policy["by"], policy["signers"], sorted(policy["limits"])) == (
        "settings",
        None,
        ["order_limits", "policy"],
    )


def test_run_that_does_not_trade_has_no_orders(client: TestClient, run: Path) -> None:
    answers = [client.get(f"/v1/{name}") for name in ("orders", "positions", "costs", "orders/d1")]
    cancel = client.post("/v1/orders/d1/cancel", json={"by": "Ann", "why": "x"})
    assert [one.status_code for one in (*answers, cancel)] == [404] * 5
    assert not [one.text for one in (*answers, cancel) if str(run) in one.text]  # where it lies is not said


def test_cancel_of_an_order_is_taken_once_by_the_run_that_goes_on(tmp_path: Path) -> None:
    prices, run = tmp_path / "prices.csv", tmp_path / "run"
    write_prices(prices, 40)
    say("trade", prices, "--out", run, "--plain", "--no-report")
    key = {"Idempotency-Key": "k1"}
    body = {"by": "Ann Lee", "why": "bad price"}
    with client_of(run) as client:
        order = client.get("/v1/orders").json()["items"][0]["order"]
        answers = [client.post(f"/v1/orders/{order}/cancel", json=body, headers=key) for _ in range(2)]
        unknown = client.post("/v1/orders/d99999/cancel", json=body)
        wide = client.post("/v1/orders/cancel", json=body | {"scope": "room:1"})
    write_prices(prices, 50)
    say("trade", prices, "--out", run, "--plain", "--no-report")
    (taken,) = [one for one in order_events(run) if isinstance(one, MassCancelRequest) and one.by]
    at_ns, _, text = taken.request.partition("-")
    assert [one.status_code for one in (*answers, unknown, wide)] == [202, 202, 404, 422]
    assert (taken.order, taken.by, taken.why) == (order, "Ann Lee", "bad price")
    cancel_orders(run, "", order, "Ann Lee", "bad price", RequestToken(int(at_ns), text, is_again=True))
    assert list((run / "order-requests").glob("*.json")) == []


def test_where_people_sign_admissions_and_ends_of_stops_count_by_their_signatures(
    run: Path, governance: Path, tmp_path: Path
) -> None:
    people = (governance / "people.toml").read_text()
    (governance / "people.toml").write_text(
        people.replace('["approver"]', '["approver", "chief_risk_officer"]')
    )
    key = load_key(tmp_path / "ann.key")

    def signed(action: AccessAction, resource: str, why: str = "checked") -> str:
        statement = RequestStatement(action, resource, run_key(run), time.time_ns(), why)
        return sign_statement(statement, key.verifier_key, key)

    admitted = signed(AccessAction.RELEASE_NEWS, "news:w1")
    cleared = signed(AccessAction.END_SUSPICION, "suspicion:SPX")
    ended = signed(AccessAction.REENABLE, "scope:series:SPX")
    with client_of(run, governance) as client:
        answers = [
            client.post("/v1/quarantine/1/admit", json={"why": "checked", "signed": admitted}),
            client.post("/v1/suspicion/clear", json={"why": "checked", "symbol": "SPX", "signed": cleared}),
            client.post("/v1/reenable", json={"why": "checked", "scope": "series:SPX", "signed": ended}),
        ]
        refused = [
            client.post("/v1/suspicion/clear", json={"why": "checked", "symbol": "SPX", "signed": cleared}),
            client.post("/v1/reenable", json={"why": "checked", "scope": "series:SPX", "signed": ended}),
            client.post("/v1/reenable", json={"why": "checked", "scope": "firm", "signed": ended}),
            client.post("/v1/suspicion/clear", json={"why": "other", "symbol": "SPX", "signed": cleared}),
        ]
    assert [one.status_code for one in answers] == [202] * 3, [one.text for one in answers]
    assert [one.status_code for one in refused] == [403] * 4, [one.text for one in refused]
    assert [one.by for one in read_admissions(run)[0]] == ["ann", "ann"]
    assert [one.signed for one in read_requests(run / "control")[0] if isinstance(one, ReenableRequest)] == [
        ended
    ]


def test_policy_is_that_of_the_bundle_that_the_officers_signed_and_the_run_adopted(tmp_path: Path) -> None:
    governance, run = tmp_path / "G", tmp_path / "run"
    key = create_signing_key(tmp_path / "ann.key", "ann")
    init_folder(governance, 1, [("ann", str(key))])
    for number, width in ((1, 0.2), (2, 0.1)):
        draft = tmp_path / f"{number}.toml"
        say(
            "policy",
            "draft",
            governance,
            "--by",
            "ann",
            "--out",
            draft,
            "--set",
            f"policy.max_band_width={width}",
        )
        say("policy", "sign", draft, "--key", tmp_path / "ann.key")
        say("policy", "propose", governance, draft)
        if number == 1:
            say("policy", "activate", governance, number)
    write_prices(tmp_path / "prices.csv", 30)
    words = (
        "run",
        tmp_path / "prices.csv",
        "--out",
        run,
        "--plain",
        "--no-report",
        "--governance",
        governance,
    )
    say(*words)
    with client_of(run, governance) as client:
        policy = client.get("/v1/policy").json()
        breakers = client.get("/v1/breakers").json()
    with client_of(run) as client:
        unsigned = client.get("/v1/policy").json()
    assert (policy["by"], policy["number"], policy["signers"]) == ("bundle", 1, ["ann"])
    assert policy["limits"]["policy"]["max_band_width"] == 0.2
    assert "— ann " in policy["note"]
    assert policy["note"].startswith(parse_note(policy["note"]).text)
    assert [(one["number"], one["signers"]) for one in policy["proposed"]] == [(2, ["ann"])]
    assert breakers["settings"] == policy["limits"]["breakers"]
    assert (unsigned["number"], unsigned["signers"], unsigned["note"]) == (1, None, None)
