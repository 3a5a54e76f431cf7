"""QuickFIX's acceptance definitions: the session passes all of FIX 4.4 and FIX 5.0 SP2, in virtual time."""

import tarfile
from pathlib import Path

import pytest

from fix_acceptance import Acceptor, Line, Session, difference, read_definition, run_definition
from fix_dictionary_tables import tables
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.dictionary import load_dictionary

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
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "quickfix-acceptance"


def acceptor(target: str, version: str) -> Acceptor:
    settings = FixSession(sender="ISLD", target=target, version=version, initiator=False, reset_on_logon=True)
    return Acceptor([Session(settings, load_dictionary(settings.dictionary_name))])


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
