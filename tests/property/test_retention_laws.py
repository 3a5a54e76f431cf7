"""Retention over any ages, classes and periods: what is due goes, all else stays, and every root is provable."""

import shutil
import tempfile
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htfi.domain.time import NS_PER_DAY
from htfi.governance.control.entries import RetentionEnded
from htfi.governance.ledger.merkle import leaf_hash
from htfi.governance.ledger.tombstones import is_tombstone
from htfi.governance.regulation.retention import (
    DECISION,
    RETENTION_CLASSES,
    DatedEntry,
    DatedFile,
    due_deletions,
    is_in_class,
)
from htfi.library.ledgers import verify_log
from htfi.pipeline.record.entry import encode_entry
from htfi.wiring.control import governance_entries
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.retention import apply_retention

FILES = ("ledger.db", "signing.key", *(f"{name}x" if name.endswith("/") else name
         for one in RETENTION_CLASSES for name in one.files))  # fmt: skip
CLASSES = st.lists(st.sampled_from(RETENTION_CLASSES), unique=True)
PERIODS = st.dictionaries(st.sampled_from([one.name for one in RETENTION_CLASSES]), st.integers(0, 40))


@given(
    ages=st.lists(st.integers(0, 50 * 24), min_size=1, max_size=30), chosen=CLASSES, days=PERIODS,
    names=st.lists(st.sampled_from(FILES), unique=True),
)  # fmt: skip
def test_exactly_what_is_older_than_its_class_is_due(ages, chosen, days, names) -> None:
    now_ns = 20_000 * NS_PER_DAY
    entries = [
        DatedEntry(k, now_ns - age * NS_PER_DAY // 24, bytes([k % 256]) * 32) for k, age in enumerate(ages)
    ]
    files = [DatedFile(name, 1) for name in names]
    newest_ns = max(one.as_of_ns for one in entries)
    found = due_deletions(entries, files, newest_ns, now_ns, days, chosen)
    assert [one.retention for one in found] == chosen
    for one in found:
        period_h = 24 * days.get(one.retention.name, one.retention.days)
        old = [k for k, age in enumerate(ages) if age > period_h]
        assert [entry.index for entry in one.entries] == (old if one.retention.name == DECISION else [])
        of_class = [name for name in names if is_in_class(name, one.retention)]
        assert [file.name for file in one.files] == (of_class if min(ages) > period_h else [])
    assert not {"ledger.db", "signing.key"} & {file.name for one in found for file in one.files}


def test_no_file_is_of_two_classes() -> None:
    found = {name: [one.name for one in RETENTION_CLASSES if is_in_class(name, one)] for name in FILES}
    assert found.pop("ledger.db") == found.pop("signing.key") == []
    assert found
    assert all(len(classes) == 1 for classes in found.values()), found


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ages=st.lists(st.integers(0, 30), min_size=1, max_size=24), kept=st.lists(st.integers(0, 30), max_size=3)
)
def test_deleted_entries_keep_their_place_and_every_root_is_provable(ages, kept, make_decisions) -> None:
    """Ages in days, in any order, as of a replay; several deletions with other periods, one after another."""
    now_ns = 20_000 * NS_PER_DAY
    decisions = [
        msgspec.structs.replace(one, as_of_ns=now_ns - age * NS_PER_DAY, id=f"{k}")
        for k, (one, age) in enumerate(zip(make_decisions(len(ages)), ages, strict=True))
    ]
    entries = [encode_entry(one) for one in decisions]
    folder = Path(tempfile.mkdtemp(prefix="htfi-"))
    try:
        log = open_ledger(folder, origin="htfi.run")
        for entry in entries:
            log.append([entry])
        roots = [log.root(size) for size in range(1, len(entries) + 1)]
        proofs = [log.inclusion_proof(index) for index in range(len(entries))]
        log.close()
        gone: set[int] = set()
        for days in kept:
            chosen = [one for one in RETENTION_CLASSES if one.name == DECISION]
            plan = apply_retention(folder, now_ns, {DECISION: days}, chosen, "Ann", "over")
            due = {k for k, age in enumerate(ages) if age > days} - gone
            assert {entry.index for one in plan.due for entry in one.entries} == due
            gone |= due
        after = open_ledger_readonly(folder)
        audit, _, _, wrong = verify_log(folder, after)
        assert (audit.size, audit.num_deleted, wrong) == (len(entries), len(gone), [])
        assert {k for k, entry in enumerate(after.entries()) if is_tombstone(entry)} == gone
        assert [leaf for _, leaf in after.signed_entries()] == [leaf_hash(entry) for entry in entries]
        assert [after.root(size) for size in range(1, len(entries) + 1)] == roots
        assert [after.inclusion_proof(index) for index in range(len(entries))] == proofs
        after.close()
        orders = [one for one in governance_entries(folder) if isinstance(one, RetentionEnded)]
        covered = [k for one in orders for span in one.spans for k in range(span.start, span.stop)]
        assert sorted(covered) == sorted(gone)  # each once
    finally:
        shutil.rmtree(folder)
