"""A venue by QuickFIX, as tests/jspurefix/venue.mjs: port, version, behaviour, the order after which it breaks off."""

# ruff: noqa: N802 (QuickFIX calls its applications by these names)

import json
import sys
import tempfile
import time
from importlib.metadata import files
from pathlib import Path
from typing import Any

import quickfix as fix

PORT, VERSION, BEHAVIOUR, BREAK_AT = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
BEGIN = "FIX.4.4" if VERSION == "FIX.4.4" else "FIXT.1.1"


def say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def send(session: Any, kind: str, fields: dict[int, str]) -> None:
    message = fix.Message()
    message.getHeader().setField(fix.BeginString(BEGIN))
    message.getHeader().setField(fix.MsgType(kind))
    for tag, value in fields.items():
        message.setField(fix.StringField(tag, value))
    message.setField(fix.TransactTime())
    fix.Session.sendToTarget(message, session)


def field(message: Any, tag: int) -> str:
    found = fix.StringField(tag)
    message.getField(found)
    return found.getString()


class Venue(fix.Application):
    """Acknowledges each order and fills it at its limit in two parts, or leaves it open until it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.orders: dict[str, dict[str, Any]] = {}
        self.num_reports = 0
        self.must_break = False

    def onCreate(self, session: Any) -> None:
        pass

    def onLogon(self, session: Any) -> None:
        pass

    def onLogout(self, session: Any) -> None:
        pass

    def toAdmin(self, message: Any, session: Any) -> None:
        pass

    def fromAdmin(self, message: Any, session: Any) -> None:
        if message.getHeader().getField(35) == "3":
            say({"problem": f"reject: {field(message, 58)}"})

    def toApp(self, message: Any, session: Any) -> None:
        pass

    def fromApp(self, message: Any, session: Any) -> None:
        kind = message.getHeader().getField(35)
        if kind == "D":
            self.take_order(message, session)
        elif kind == "F":
            self.take_cancel(message, session)
        else:
            say({"problem": kind})

    def take_order(self, message: Any, session: Any) -> None:
        order = {"id": field(message, 11), "symbol": field(message, 55), "side": field(message, 54), "filled": 0,
                 "quantity": int(field(message, 38)), "price": field(message, 44), "is_open": True}  # fmt: skip
        self.orders[order["id"]] = order
        say({"order": order["id"]})
        breaks = len(self.orders) == BREAK_AT
        if BEHAVIOUR == "open" and breaks:
            self.must_break = True
            return
        self.report(session, order, {150: "0", 39: "0"})
        if BEHAVIOUR == "fill":
            half = order["quantity"] // 2
            for lots in (half, order["quantity"] - half) if half else (order["quantity"],):
                order["filled"] += lots
                status = "2" if order["filled"] == order["quantity"] else "1"
                more = {150: "F", 39: status, 32: str(lots), 31: order["price"]}
                exec_id = self.report(session, order, more)
                say({"fill": exec_id, "order": order["id"], "lots": lots, "price": order["price"],
                     "symbol": order["symbol"], "side": order["side"]})  # fmt: skip
            order["is_open"] = False
            self.must_break = breaks

    def take_cancel(self, message: Any, session: Any) -> None:
        order = self.orders.get(field(message, 41))
        if order is not None and order["is_open"]:
            order["is_open"] = False
            say({"cancel": order["id"]})
            self.report(
                session, order, {150: "4", 39: "4", 11: field(message, 11), 41: order["id"], 151: "0"}
            )
            return
        status = "8" if order is None else "2"
        body = {37: "NONE", 11: field(message, 11), 41: field(message, 41), 39: status, 434: "1"}
        send(session, "9", body | {102: "1" if order is None else "0"})

    def report(self, session: Any, order: dict[str, Any], more: dict[int, str]) -> str:
        self.num_reports += 1
        exec_id = f"E{self.num_reports}"
        plain = {37: f"V{order['id']}", 11: order["id"], 17: exec_id, 55: order["symbol"], 54: order["side"],
                 38: str(order["quantity"]), 151: str(order["quantity"] - order["filled"]), 14: str(order["filled"]),
                 6: order["price"] if order["filled"] else "0"}  # fmt: skip
        send(session, "8", plain | more)
        return exec_id


def dictionary(name: str) -> Path:
    """A dictionary that the package ships: without one it takes a repeating group for repeated fields."""
    found = next(one for one in files("quickfix") or [] if one.name == f"{name}.xml")
    return Path(found.locate()).resolve()


def settings_file(folder: Path) -> str:
    lines = [
        "[DEFAULT]", "ConnectionType=acceptor", f"FileStorePath={folder}", "StartTime=00:00:00", "EndTime=00:00:00",
        "HeartBtInt=30", "UseDataDictionary=Y", "SocketNodelay=Y", "ResetOnLogon=N", "SocketReuseAddress=Y",
        "[SESSION]", f"BeginString={BEGIN}", "SenderCompID=PEER", "TargetCompID=HTFI", f"SocketAcceptPort={PORT}",
    ]  # fmt: skip
    if BEGIN == "FIXT.1.1":
        lines += ["DefaultApplVerID=FIX.5.0SP2", f"TransportDataDictionary={dictionary('FIXT11')}",
                  f"AppDataDictionary={dictionary('FIX50SP2')}"]  # fmt: skip
    else:
        lines.append(f"DataDictionary={dictionary('FIX44')}")
    path = folder / "session.cfg"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def main() -> None:
    application = Venue()
    with tempfile.TemporaryDirectory() as folder:
        settings = fix.SessionSettings(settings_file(Path(folder)))
        store = fix.FileStoreFactory(settings)
        while True:
            engine = fix.SocketAcceptor(application, store, settings)
            engine.start()
            while not application.must_break:
                time.sleep(0.01)
            application.must_break = False
            engine.stop(True)  # breaks the connection off; the store has the numbers
            del engine  # a session may be there once


if __name__ == "__main__":
    main()
