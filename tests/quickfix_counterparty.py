"""One side of a FIX session by QuickFIX. Arguments: role, port, number of orders, version; see `fix_exchange`."""

# ruff: noqa: N802 (QuickFIX calls its applications by these names)

import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import quickfix as fix

ROLE, PORT, COUNT, VERSION = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
BEGIN = "FIX.4.4" if VERSION == "FIX.4.4" else "FIXT.1.1"


def message_of(kind: str, fields: list[tuple[int, str]]) -> Any:
    message = fix.Message()
    message.getHeader().setField(fix.BeginString(BEGIN))
    message.getHeader().setField(fix.MsgType(kind))
    for tag, value in fields:
        message.setField(fix.StringField(tag, value))
    message.setField(fix.TransactTime())
    return message


def field(message: Any, tag: int) -> str:
    found = fix.StringField(tag)
    message.getField(found)
    return found.getString()


class Counterparty(fix.Application):
    """Sends its orders at logon; answers each order with a report."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, list[str]] = {"orders": [], "reports": [], "problems": []}
        self.is_complete, self.has_left = threading.Event(), threading.Event()

    def onCreate(self, session: Any) -> None:
        pass

    def onLogon(self, session: Any) -> None:
        threading.Thread(target=self.send_orders, args=(session,), daemon=True).start()

    def send_orders(self, session: Any) -> None:
        for number in range(COUNT):
            fields = [(11, f"P{number}"), (55, "IBM"), (54, "1"), (38, "100"), (40, "2"), (44, "101.25")]
            fix.Session.sendToTarget(message_of("D", fields), session)

    def onLogout(self, session: Any) -> None:
        self.has_left.set()

    def toAdmin(self, message: Any, session: Any) -> None:
        pass

    def fromAdmin(self, message: Any, session: Any) -> None:
        kind = message.getHeader().getField(35)
        if kind == "3":
            self.seen["problems"].append(f"reject: {field(message, 58)}")

    def toApp(self, message: Any, session: Any) -> None:
        pass

    def fromApp(self, message: Any, session: Any) -> None:
        kind = message.getHeader().getField(35)
        if kind == "D":
            order = field(message, 11)
            self.seen["orders"].append(order)
            fields = [(37, f"V{order}"), (11, order), (17, f"E{order}"), (150, "0"), (39, "0"), (55, "IBM"), (54, "1"),
                      (151, "100"), (14, "0"), (6, "0")]  # fmt: skip
            fix.Session.sendToTarget(message_of("8", fields), session)
        elif kind == "8":
            self.seen["reports"].append(field(message, 11))
        else:
            self.seen["problems"].append(kind)
        if len(self.seen["orders"]) == COUNT and len(self.seen["reports"]) == COUNT:
            self.is_complete.set()


def settings_file(folder: Path) -> str:
    lines = [
        "[DEFAULT]", f"ConnectionType={ROLE}", f"FileStorePath={folder}", "StartTime=00:00:00", "EndTime=00:00:00",
        "HeartBtInt=30", "UseDataDictionary=N", "ReconnectInterval=1", "SocketNodelay=Y",
        f"ResetOnLogon={'Y' if ROLE == 'initiator' else 'N'}", "[SESSION]", f"BeginString={BEGIN}",
        "SenderCompID=PEER", "TargetCompID=HTFI",
    ]  # fmt: skip
    if BEGIN == "FIXT.1.1":
        lines.append("DefaultApplVerID=FIX.5.0SP2")
    address = ["SocketConnectHost=127.0.0.1", f"SocketConnectPort={PORT}"]
    lines += address if ROLE == "initiator" else [f"SocketAcceptPort={PORT}"]
    path = folder / "session.cfg"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def main() -> None:
    application = Counterparty()
    with tempfile.TemporaryDirectory() as folder:
        settings = fix.SessionSettings(settings_file(Path(folder)))
        store = fix.FileStoreFactory(settings)
        kind = fix.SocketInitiator if ROLE == "initiator" else fix.SocketAcceptor
        engine = kind(application, store, settings)
        engine.start()
        application.is_complete.wait(100.0)
        time.sleep(0.02)
        sys.stdout.write(json.dumps(application.seen) + "\n")
        sys.stdout.flush()
        if ROLE == "acceptor":
            application.has_left.wait(20.0)
        engine.stop()


if __name__ == "__main__":
    main()
