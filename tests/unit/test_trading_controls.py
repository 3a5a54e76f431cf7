"""Who holds trading back: stops and people beside each other, also where a run goes on from its order log."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from htfi.adapters.stores.order_log import ORDERS, OrderLog, read_order_log
from htfi.adapters.stores.order_requests import FOLDER, OrderRequest, OrderRequests, write_order_request
from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.order_limits import OrderLimits
from htfi.domain.orders import MarketSnapshot, MassCancelRequest, TradingDisabled, TradingEnabled
from htfi.execution.turns import RunTurn
from htfi.governance.config import PolicyConfig
from htfi.governance.control.state import ControlState
from htfi.pipeline.governed import RunGovernance
from htfi.wiring.order_record import RecordedOrders
from htfi.wiring.trading import ControlEvent, TradingControls

STOPPED = ControlState(stops={"firm": "fire drill"})
BAN = TradingDisabled(at_ns=1, scope="firm", cause="bad prices", by="Ann")
LIFT = TradingEnabled(at_ns=2, scope="firm", by="Ann", why="mended")


class Run:
    """Controls over a folder, recorded as the trader records them."""

    def __init__(self, folder: Path, traded: str = "") -> None:
        self.folder = folder
        self.turn = RunTurn()
        self.log = OrderLog(folder, durable=False)
        self.governance = RunGovernance(PolicyConfig())
        self._controls = TradingControls(
            self.log, OrderLimits(), self.governance, OrderRequests(folder), self.turn, lambda _: traded
        )

    def ask(self, request: OrderRequest) -> None:
        write_order_request(self.folder, request)

    def heed(
        self,
        at_ns: int,
        state: ControlState | None = None,
        resting: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> list[str]:
        """What was done in the next turn, a word each. `resting` are the models behind open orders, by instrument."""
        self.turn.number += 1
        self.governance.state_now = state or ControlState()
        done: list[str] = []
        while events := self._controls.changes(at_ns, lambda: resting):
            self.log.append(events)
            done += _words(events)
        return done


def _words(events: Sequence[ControlEvent]) -> list[str]:
    names = {TradingDisabled: "disabled", TradingEnabled: "enabled", MassCancelRequest: "cancel"}
    return [f"{names[type(one)]} by {one.by or 'a stop'}" for one in events]


def test_what_a_person_disabled_stays_disabled_when_the_run_goes_on(tmp_path: Path) -> None:
    first = Run(tmp_path)
    first.ask(BAN)
    assert first.heed(10) == ["disabled by Ann"]
    first.log.close()
    second = Run(tmp_path)
    assert second.heed(10) == ["disabled by Ann"]
    assert second.heed(20) == []


def test_the_end_of_a_stop_does_not_lift_what_a_person_disabled(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.ask(BAN)
    assert run.heed(10, STOPPED) == ["disabled by a stop", "cancel by governance log", "disabled by Ann"]
    assert run.heed(20) == []
    run.ask(LIFT)
    assert run.heed(30) == ["enabled by Ann"]


def test_a_person_cannot_enable_what_a_stop_holds(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.heed(10, STOPPED)
    run.ask(LIFT)
    assert run.heed(20, STOPPED) == ["enabled by Ann", "disabled by a stop", "cancel by governance log"]
    assert run.heed(30) == ["enabled by governance log"]


def test_a_crash_between_a_stop_and_its_cancel_loses_no_cancel(tmp_path: Path) -> None:
    log = OrderLog(tmp_path, durable=False)
    log.append([TradingDisabled(at_ns=10, scope="firm", cause="stop: fire drill")])
    log.close()
    run = Run(tmp_path)
    assert run.heed(10, STOPPED) == ["disabled by a stop", "cancel by governance log"]
    assert run.heed(20, STOPPED) == []


def test_a_replayed_request_is_taken_at_its_own_instant(tmp_path: Path) -> None:
    log = OrderLog(tmp_path, durable=False)
    log.append([MassCancelRequest(at_ns=20, by="Ann", why="bad prices")])
    log.close()
    run = Run(tmp_path)
    assert run.heed(10) == []
    assert run.heed(20) == ["cancel by Ann"]


def test_a_replayed_request_is_taken_at_its_own_turn_of_several_at_one_instant(tmp_path: Path) -> None:
    first = Run(tmp_path)
    assert [first.heed(10), first.heed(10)] == [[], []]
    first.ask(BAN)
    assert first.heed(10) == ["disabled by Ann"]
    first.log.close()
    second = Run(tmp_path)
    assert [second.heed(10), second.heed(10), second.heed(10)] == [[], [], ["disabled by Ann"]]


def test_a_file_that_is_no_request_is_left_aside_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path)
    run.ask(BAN)
    (tmp_path / FOLDER / "0.json").write_text("cancel everything")
    assert run.heed(10) == ["disabled by Ann"]
    (line,) = capsys.readouterr().err.splitlines()
    assert "0.json: is no request" in line
    assert (tmp_path / FOLDER / "0.unusable").exists()


@pytest.mark.parametrize(("traded", "done"), [("A/1h", 2), ("A/1d", 0)])
def test_the_stop_of_a_series_reaches_its_instrument_only_where_that_is_traded_by_it(
    tmp_path: Path, traded: str, done: int
) -> None:
    run = Run(tmp_path, traded)
    assert len(run.heed(10, ControlState(stops={"series:A/1h": "odd forecasts"}))) == done


def test_a_request_that_comes_within_a_tick_of_the_folders_clock_is_taken(tmp_path: Path) -> None:
    requests = OrderRequests(tmp_path)
    first = write_order_request(tmp_path, BAN)
    folder = tmp_path / FOLDER
    assert len(requests.take()) == 1
    mark = folder.stat().st_mtime_ns
    first.unlink()
    write_order_request(tmp_path, LIFT)
    os.utime(folder, ns=(mark, mark))
    assert requests.take() == [LIFT]


def test_a_cut_order_log_is_not_made_again_into_its_transparency_log(tmp_path: Path) -> None:
    record = RecordedOrders(tmp_path)
    record.append([MarketSnapshot(at_ns=n, instrument="A", venue="XSIM") for n in (1, 2)])
    record.close()
    (tmp_path / ORDERS).unlink()
    with pytest.raises(IntegrityError, match="holds 0 events of 2 recorded: restore it"):
        RecordedOrders(tmp_path)


def test_an_order_log_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ORDERS).mkdir()
    with pytest.raises(DependencyUnavailable, match="cannot be read: Is a directory"):
        list(read_order_log(tmp_path))


def of_model(name: str, scope: str = "breaker") -> ControlState:
    if scope == "stop":
        return ControlState(stops={f"model:{name}": "command by Ann: a drill"})
    return ControlState(breakers={("views_shift", f"model:{name}"): "views_shift is open: other views"})


@pytest.mark.parametrize("cause", ["stop", "breaker"])
def test_a_held_model_cancels_the_orders_that_go_back_to_it_and_disables_nothing(
    tmp_path: Path, cause: str
) -> None:
    run = Run(tmp_path)
    resting = {"SPX": {"ewma", "target"}, "IBM": {"ewma"}, "VIX": set[str]()}
    assert run.heed(10, of_model("other", cause), resting) == []
    assert run.heed(20, of_model("target", cause), resting) == ["cancel by governance log"]
    (event,) = read_order_log(tmp_path)
    assert isinstance(event, MassCancelRequest)
    assert (event.instrument, event.why.partition(":")[0]) == ("SPX", "model")
    assert event.why.startswith("model:target: ")
    assert run.heed(20, of_model("target", cause), resting) == []  # asked for once an instant
    resting["SPX"] = set()  # cancelled
    assert run.heed(30, of_model("target", cause), resting) == []
    assert run.heed(40, of_model("ewma", cause), resting) == ["cancel by governance log"]
