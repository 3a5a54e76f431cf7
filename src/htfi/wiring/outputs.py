"""Opens what a run leaves behind, for the apps that show it: the decisions as lines and as a table."""

from htfi.adapters.stores.decision_table import write_parquet
from htfi.adapters.stores.decisions import (
    JOURNAL,
    DecisionJournal,
    Released,
    Withheld,
    journal_size,
    read_decisions,
    subject,
)

__all__ = [
    "JOURNAL",
    "DecisionJournal",
    "Released",
    "Withheld",
    "journal_size",
    "read_decisions",
    "subject",
    "write_parquet",
]
