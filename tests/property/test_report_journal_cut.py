"""Wherever a crash cuts the journal, the next run ends with the same bytes."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htfi.adapters.stores.decisions import DecisionJournal
from htfi.domain.decision import Receipt, encode_decision
from htfi.governance.ledger.merkle import leaf_hash


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(share=st.floats(0, 1), withhold_every=st.integers(0, 4))
def test_a_journal_cut_anywhere_is_completed_to_the_same_bytes(
    tmp_path, make_decisions, write_journal, share, withhold_every
):
    decisions = make_decisions(8, withhold_every=withhold_every)
    path = tmp_path / "decisions.jsonl"
    path.unlink(missing_ok=True)
    write_journal(tmp_path, decisions)
    whole = path.read_bytes()
    cut = whole[: round(share * len(whole))]
    path.write_bytes(cut)

    journal = DecisionJournal(tmp_path)
    assert journal.num_released == cut.count(b"\n")
    for index in range(journal.num_released, len(decisions)):
        entry = encode_decision(decisions[index])
        journal.release(Receipt(index, leaf_hash(entry).hex()), entry)
    journal.close()
    assert path.read_bytes() == whole
