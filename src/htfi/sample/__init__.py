"""The embedded sample: real prices and hand-written headlines as files, and the mapping that reads them.

`htfi run` without arguments replays it. docs/sample.md gives origin, licence and digest of each file.
"""

from pathlib import Path

_FOLDER = Path(__file__).parent

MAPPING = _FOLDER / "sources.toml"
FILES = (
    _FOLDER / "spx_daily.parquet",
    _FOLDER / "vix_daily.parquet",
    _FOLDER / "ibm_trades.parquet",
    _FOLDER / "ibm_quotes.parquet",
    _FOLDER / "headlines.jsonl",
    _FOLDER / "policy_rate.jsonl",
)


def paths() -> tuple[Path, ...]:
    """The sample's data files; `MAPPING` says how to read them."""
    return FILES
