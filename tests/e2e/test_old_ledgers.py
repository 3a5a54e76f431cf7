"""Ledgers that earlier versions left behind verify, replay and are read by the code as it stands."""

from collections.abc import Callable
from pathlib import Path

import pytest

from archives import unpack
from htfi.apps.display.known_events import known_events_words
from htfi.domain.decision import Decision, PolicyOutcome, encode_decision
from htfi.pipeline.record.entry import decode_entry, encode_entry, entry_json
from htfi.pipeline.record.words import WORDS
from htfi.wiring.ledger import open_ledger_readonly

Htfi = Callable[..., str]
LEDGERS = Path(__file__).parents[1] / "data" / "ledgers"
ROOTS = {
    "run-0.1.0": "8ff65e94d3b7be38b5fdbc552b361cc38b6eea2e2cbeee277f5a840af2f0f415",
    "edge-0.1.0": "72951e1d40c36c0d266fb2d6916146056dec97ff6af590609a3e4ebc2632a2bb",
    "run-narrator-2": "4c200c00632928887ae3390d73c2da356b58381413fb0ad82e28669121e1a912",
    "run-templates-5": "e2eeb764d546bc29247cdea0e5256806a3de9ff2b8b3388fb173b6f640220da9",
    "run-fidelity-3": "39274227faad8f9f96479188f801a97f296a2e81be05b018c77e0415ec5bcdd4",
    "run-record-2": "9faa6b2341c833fc57c065f82f4ab7debcb4d320b22e51a7f97f2960b1dd6f94",
    "run-record-3": "d89acb5cd6703bb74a074ead0e12ae02a34b0f436883beea83cc7adc0fc5328b",
    "run-record-4": "df8785a5acdccd8bc1747b662aa19a76cce13a3cb02669aa4dc6fe39e6ef412c",
    "run-templates-6": "3f5006b7f9a70e7f31eb4ab350023ff5e55b98f13a494a2f2a119dd3e9d56b78",
    "run-traced": "94d6c63762601a0b643a3a66f6439b0aefd30a51abec092ad846d4615e82d96e",
    "run-neutral-1": "3aba164082fcf10ad829871d35bb154d31d6b075a5c3bb54eb204ccac4e51d32",
    "run-neutral-2": "930e787e4af68be9d1876ad506c0b3eb3fa2bd3377ef6c6c4f89cb851c209d12",
    "run-swaps-2": "acc0ca321ae6b9eedefbd3e429aae383cc97a51307530af43f90b37f1e30cfdd",
    "run-known-events": "966cbe74b49d6fc161fd419e5e216edf6e89ca6cfa8068163ef8812f901e2e4b",
    "run-templates-7": "9c644b80855a23eaee973ca74c07de6fc569cf43f86548cefef4e17e7b9840be",
    "edge-narrator-2": "cc84292926196039eace35eadf0fbb080c6f9a40ced35237baf00a7ba51cfa64",
    "edge-templates-5": "0a7dbe1fda5b212bb5cb8452834cd7af97b00c8d13dc2b872f9768ac93d8f224",
}
NUM_ENTRIES = {
    "run-0.1.0": (25, 3),
    "edge-0.1.0": (25, 3),
    "run-narrator-2": (25, 3),
    "edge-narrator-2": (29, 7),
    "run-templates-5": (25, 3),
    "run-fidelity-3": (33, 5),
    "run-record-2": (38, 9),
    "run-record-3": (40, 10),
    "run-record-4": (44, 14),
    "run-templates-6": (40, 10),
    "run-traced": (40, 10),
    "run-neutral-1": (35, 5),
    "run-neutral-2": (34, 4),
    "run-swaps-2": (35, 5),
    "run-known-events": (40, 10),
    "run-templates-7": (40, 10),
    "edge-templates-5": (37, 15),
}


@pytest.fixture(scope="module", params=sorted(ROOTS))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("ledgers")
    unpack(LEDGERS / f"{request.param}.tar.xz", parent)
    return parent / request.param


def decisions(folder: Path) -> list[Decision]:
    ledger = open_ledger_readonly(folder)
    try:
        return [decode_entry(entry) for entry in ledger.entries()]
    finally:
        ledger.close()


def test_every_archive_is_named_here() -> None:
    assert {path.name.removesuffix(".tar.xz") for path in LEDGERS.glob("*.tar.xz")} == set(ROOTS)


def test_the_archives_hold_what_their_page_says(folder: Path) -> None:
    made = decisions(folder)
    num_amendments = sum(bool(decision.amends) for decision in made)
    assert (len(made), num_amendments) == NUM_ENTRIES[folder.name]
    if folder.name.startswith("edge"):
        assert sum(bool(decision.view and decision.view.provisional) for decision in made) >= 3
    else:
        assert sum(decision.verdict.outcome is PolicyOutcome.WITHHOLD for decision in made) >= 11
        assert any(decision.news_context is not None for decision in made)


def test_its_decisions_come_out_of_every_form_as_they_went_in(folder: Path) -> None:
    made = decisions(folder)
    told = [encode_decision(decision) for decision in made]
    for version in WORDS:
        entries = [encode_entry(decision, version) for decision in made]
        assert [decode_entry(entry) for entry in entries] == made
        assert [entry_json(entry) for entry in entries] == told


def test_an_old_ledger_verifies_to_its_root(folder: Path, htfi: Htfi) -> None:
    assert ROOTS[folder.name] in htfi("ledger", "verify", str(folder), "--recompute")


def kind_of_reading(decision: Decision) -> tuple[object, ...]:
    """What decides how a reading is replayed."""
    assert decision.view is not None
    assert decision.view.trace is not None
    trace = decision.view.trace
    return (
        decision.plan.rung,
        decision.view.provisional,
        bool(decision.amends),
        trace.strategy,
        len(trace.paths),
    )


@pytest.mark.usefixtures("models_opened_once")
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_readings_of_an_old_ledger_replay(folder: Path, htfi: Htfi, every: bool) -> None:
    """The newest of each kind, or every one."""
    read = [decision for decision in decisions(folder) if decision.view and decision.view.trace]
    assert len(read) >= 4
    newest = {kind_of_reading(decision): decision for decision in read}
    for decision in read if every else newest.values():
        assert "replayed" in htfi("ledger", "replay", str(folder), decision.id)


def test_an_old_ledger_is_shown_audited_proved_and_reported(folder: Path, tmp_path: Path, htfi: Htfi) -> None:
    decision = decisions(folder)[-1]
    assert decision.symbol in htfi("ledger", "show", str(folder), decision.id)
    assert decision.symbol in htfi("ledger", "audit", str(folder), decision.id)
    htfi("ledger", "prove", str(folder), "--index", "0", "--json", str(tmp_path / "proof.json"))
    htfi("ledger", "check-proof", str(tmp_path / "proof.json"))
    htfi("report", str(folder))
    assert decision.symbol in (folder / "report.html").read_text(encoding="utf-8")


def test_the_events_of_a_band_are_read_from_an_old_ledger(tmp_path: Path, htfi: Htfi) -> None:
    unpack(LEDGERS / "run-known-events.tar.xz", tmp_path)
    folder = tmp_path / "run-known-events"
    held = [decision for decision in decisions(folder) if known_events_words(decision)]
    assert len(held) == 8
    words = "the next bar's band is × 7.58 for earnings at 2024-03-05 05:30 (× 7.58)"
    assert known_events_words(held[0]) == words
    assert words in htfi("ledger", "show", str(folder), held[0].id)
