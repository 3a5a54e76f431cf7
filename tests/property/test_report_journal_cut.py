"""Wherever a crash cuts the journal, the next run ends with the same bytes."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.adapters.stores.decisions import DecisionJournal
from htfi.domain.decision import Receipt, encode_decision
from htfi.governance.ledger.merkle import leaf_hash


@settings(
    max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(share=st.floats(0, 1), withhold_every=st.integers(0, 4))
def test_a_journal_cut_anywhere_is_completed_to_the_same_bytes(
    tmp_path, make_decisions, share, withhold_every
):
    entries = [encode_decision(decision) for decision in make_decisions(8, withhold_every=withhold_every)]
    path = tmp_path / "decisions.jsonl"
    path.unlink(missing_ok=True)

    def release_the_rest():
        journal = DecisionJournal(tmp_path)
        num_released = journal.num_released
        for index in range(num_released, len(entries)):
            journal.release(Receipt(index, leaf_hash(entries[index]).hex()), entries[index])
        journal.close()
        return num_released

    release_the_rest()
    whole = path.read_bytes()
    cut = whole[: round(share * len(whole))]
    path.write_bytes(cut)
    assert release_the_rest() == cut.count(b"\n")
    assert path.read_bytes() == whole
