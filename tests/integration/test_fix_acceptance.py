"""QuickFIX's acceptance definitions: the session passes all of FIX 4.4 and FIX 5.0 SP2, in virtual time."""

import asyncio
import time
from pathlib import Path

import pytest

from archives import unpack
from fix_acceptance import (
    Acceptor,
    EchoApplication,
    Line,
    Session,
    difference,
    message_of,
    read_definition,
    run_definition,
)
from fix_dictionary_tables import tables
from htfi.adapters.fix import connections
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.framing import split_frames
from htfi.execution.fix.messages import FixMessage

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT.parent / "shared/data/fix/quickfix_acceptance_fix40-50sp2.tar.xz"
COUNTERPARTIES = {"fix44": ("TW44", "FIX.4.4"), "fix50sp2": ("TW50SP2", "FIX.5.0SP2")}
NUM_SCENARIOS = {"fix44": 59, "fix50sp2": 60}
# QuickFIX puts DefaultApplVerID (1137) into BusinessMessageReject, a message that has no such field in FIX 5.0 SP2.
EXCEPTIONS = {("fix50sp2", "2r_UnregisteredMsgType.def"): ("1137=9\x01", "9=106\x01", "9=99\x01")}

pytestmark = pytest.mark.skipif(
    not ARCHIVE.is_file(), reason="QuickFIX's acceptance definitions are not staged"
)


@pytest.fixture(scope="module")
def quickfix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quickfix")
    unpack(ARCHIVE, folder)
    return folder / "quickfix-acceptance"


def acceptor(target: str, version: str) -> Acceptor:
    settings = FixSession(sender="ISLD", target=target, version=version, initiator=False, reset_on_logon=True)
    return Acceptor([Session(settings)])


def run(path: Path, target: str, version: str) -> int:
    removed, *lengths = EXCEPTIONS.get((path.parent.name, path.name), ("", "", ""))

    def compare(line: Line, frame: bytes) -> str:
        text = (
            line.text.replace(removed, "").replace(*lengths)
            if removed and removed in line.text and "35=j" in line.text
            else line.text
        )
        return difference(text, frame)

    return run_definition(read_definition(path), acceptor(target, version), compare)


@pytest.mark.parametrize("version", sorted(COUNTERPARTIES))
def test_session_passes_every_definition(quickfix: Path, version: str) -> None:
    paths = sorted((quickfix / "test/definitions/server" / version).glob("*.def"))
    assert len(paths) == NUM_SCENARIOS[version]
    failures = {}
    num_messages = 0
    for path in paths:
        try:
            num_messages += run(path, *COUNTERPARTIES[version])
        except AssertionError as error:
            failures[path.name] = str(error)
    assert failures == {}
    assert num_messages >= 238


def test_empty_value_is_refused_as_with_quickfixs_validation(quickfix: Path) -> None:
    lines = read_definition(quickfix / "test/definitions/server/validate/CheckFieldsHaveValues.def")
    second = next(line.number for line in lines if "NO_CHECK_FIELDS" in line.text)
    first_half = [line for line in lines if line.number < second - 1]
    assert run_definition(first_half, acceptor("TW", "FIX.4.4")) == 3


def test_shipped_dictionaries_are_what_quickfix_says(quickfix: Path) -> None:
    expected = tables(quickfix / "spec")
    folder = ROOT / "src/htfi/execution/fix/dictionaries"
    assert {name: (folder / name).read_text() for name in expected} == expected
    assert sorted(expected) == sorted(path.name for path in folder.glob("*.toml"))


def test_reader_notices_a_wrong_answer(quickfix: Path) -> None:
    lines = read_definition(quickfix / "test/definitions/server/fix44/4b_ReceivedTestRequest.def")
    wrong = [
        Line(
            line.number,
            line.what,
            line.connection,
            line.text.replace("112=HELLO", "112=HELLX") if line.what == "E" else line.text,
        )
        for line in lines
    ]
    with pytest.raises(AssertionError, match="expected '112=HELLX', was '112=HELLO'"):
        run_definition(wrong, acceptor("TW44", "FIX.4.4"))


class Echo:
    """QuickFIX's test application on a real session."""

    def __init__(self) -> None:
        self.application = EchoApplication()

    def on_logon(self, runner: SessionRunner) -> None: ...

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        for kind, body, header in self.application.receive(message, runner.dictionary):
            runner.send(kind, body, header)

    def on_disconnect(self, runner: SessionRunner, why: str) -> None:
        self.application = EchoApplication()


async def run_over_sockets(lines: list[Line], port: int) -> int:
    """The same reader over sockets and in real time; the number of messages that were as expected."""
    readers: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
    arrived: dict[int, list[bytes]] = {}
    rests: dict[int, bytes] = {}
    num_expected = 0

    async def read_more(place: int) -> bool:
        data = await asyncio.wait_for(readers[place][0].read(65_536), 10.0)
        frames, rests[place] = split_frames(rests[place] + data, 2**20)
        arrived[place] += frames
        return data != b""

    for line in lines:
        place = line.connection
        if line.what == "i" and line.text == "CONNECT":
            readers[place] = await asyncio.open_connection("127.0.0.1", port)
            arrived[place], rests[place] = [], b""
        elif line.what == "i":
            readers[place][1].close()
        elif line.what == "I":
            readers[place][1].write(message_of(line.text, time.time_ns()))
        elif line.what == "E":
            while not arrived[place]:
                assert await read_more(place), f"line {line.number}: disconnected"
            wrong = difference(line.text, arrived[place].pop(0))
            assert not wrong, f"line {line.number}: {wrong}"
            num_expected += 1
        else:
            while await read_more(place):
                pass
            assert arrived[place] == []
            readers[place][1].close()
    return num_expected


@pytest.mark.parametrize(
    "name",
    ["1b_DuplicateIdentity", "1c_InvalidSenderCompID", "2m_BodyLengthValueNotCorrect", "2k_CompIDDoesNotMatchProfile",
     "8_AdminAndApplicationMessages", "20_SimultaneousResendRequest", "SessionReset", "14h_RepeatedTag"],
)  # fmt: skip
def test_definitions_pass_over_real_sockets(quickfix: Path, tmp_path: Path, name: str) -> None:
    lines = read_definition(quickfix / f"test/definitions/server/fix44/{name}.def")
    settings = FixSession("ISLD", "TW44", initiator=False, reset_on_logon=True)

    async def serve() -> int:
        runner = SessionRunner(settings, MessageJournal(tmp_path, sync=False), Echo())
        acceptor = connections.Acceptor([runner])
        port = await acceptor.listen("127.0.0.1", 0)
        num_expected = await run_over_sockets(lines, port)
        await acceptor.close()
        return num_expected

    assert asyncio.run(serve()) == sum(line.what == "E" for line in lines)
