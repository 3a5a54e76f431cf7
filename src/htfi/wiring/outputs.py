"""Opens what a run leaves behind, for the apps that show it: the decisions as lines and as a table."""

from htfi.adapters.stores.decision_table import write_parquet
from htfi.adapters.stores.decisions import DecisionJournal, Released, Withheld, read_decisions

__all__ = ["DecisionJournal", "Released", "Withheld", "read_decisions", "write_parquet"]
