"""Cuts the embedded sample's price files from their sources; run by hand when the sample should change.

    python examples/build_sample.py --arch ARCH_WHEEL --vix FILE --trades FILE --quotes FILE --out FOLDER

ARCH_WHEEL comes from `pip download --no-deps arch==8.0.0`. The other three are Parquet tables: VIX_open,
VIX_high, VIX_low and VIX_close by date (datasets/finance-vix), and the ticks of QuantConnect/Lean.
docs/sample.md says more. The headlines and the policy rate are written by hand and are not touched.
"""

import argparse
import gzip
import hashlib
import io
import zipfile
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

FIRST_DAY, LAST_DAY = date(2006, 1, 3), date(2009, 12, 31)
MORNING = datetime(2013, 10, 10, 13, 30, tzinfo=UTC), datetime(2013, 10, 10, 16, 0, tzinfo=UTC)
TICKER = "IBM"


def main() -> None:
    parser = argparse.ArgumentParser(description="Cut the embedded sample from its sources.")
    for name in ("arch", "vix", "trades", "quotes", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args()
    lean = {"origin": "QuantConnect/Lean 24863901deff, Data/equity/usa/tick", "licence": "Apache-2.0"}
    vix = {"origin": "datasets/finance-vix 6f56e2760520 (Cboe)", "licence": "PDDL-1.0"}
    spx, notice = read_spx(given.arch)
    write(spx, given.out / "spx_daily.parquet", {"origin": "PyPI arch 8.0.0, sp500", "licence": notice})
    write(read_vix(given.vix), given.out / "vix_daily.parquet", vix)
    write(read_ticks(given.trades, ["cond"]), given.out / "ibm_trades.parquet", lean)
    write(read_ticks(given.quotes, []), given.out / "ibm_quotes.parquet", lean)


def read_spx(wheel: Path) -> tuple[pa.Table, str]:
    """S&P 500 bars by day, in cents as published, and the licence text that must travel with them."""
    with zipfile.ZipFile(wheel) as archive:
        rows = gzip.decompress(archive.read("arch/data/sp500/sp500.csv.gz"))
        notice = archive.read("arch-8.0.0.dist-info/licenses/LICENSE.md").decode()
    options = pyarrow.csv.ConvertOptions(
        timestamp_parsers=["%m/%d/%Y"], column_types={"Date": pa.timestamp("s")}
    )
    table = pyarrow.csv.read_csv(io.BytesIO(rows), convert_options=options)
    table = table.set_column(0, "Date", table["Date"].cast(pa.date32()))
    columns = {"date": table["Date"]}
    columns |= {name.lower(): pc.round(table[name], 2) for name in ("Open", "High", "Low", "Close")}
    columns["volume"] = table["Volume"].cast(pa.int64())
    return within(pa.table(columns)), notice


def read_vix(file: Path) -> pa.Table:
    """VIX bars by day, one column per price, from a table of date, series and value."""
    table = pq.read_table(file)
    columns: dict[str, pa.Array] = {}
    for name in ("open", "high", "low", "close"):
        series = within(table.filter(pc.equal(table["series"], f"VIX_{name}"))).sort_by("date")
        if columns and not columns["date"].equals(series["date"]):
            raise SystemExit(f"VIX_{name} has other dates than VIX_open")
        columns["date"] = series["date"]
        columns[name] = pc.round(series["value"], 2)
    return pa.table(columns)


def read_ticks(file: Path, extra: list[str]) -> pa.Table:
    """The morning's rows as they stand: one side of one exchange each, repeated ones included."""
    start, end = (pa.scalar(moment, pa.timestamp("ms", tz="UTC")) for moment in MORNING)
    names = pq.read_schema(file).names
    wanted = [name for name in ("ts", "symbol", "exchange", "side", "price", "size", *extra) if name in names]
    rows = (pc.field("ts") >= start) & (pc.field("ts") < end) & (pc.field("symbol") == TICKER)
    table = pq.read_table(file, filters=rows, columns=wanted)
    plain = [
        pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema
    ]
    return table.cast(pa.schema(plain)).replace_schema_metadata(None)


def within(table: pa.Table) -> pa.Table:
    return table.filter(
        pc.and_(pc.greater_equal(table["date"], FIRST_DAY), pc.less_equal(table["date"], LAST_DAY))
    )


def write(table: pa.Table, file: Path, notes: dict[str, str]) -> None:
    """Zstandard at its best, sorted as it came, with origin and licence in the file's own metadata."""
    table = table.replace_schema_metadata({key.encode(): text.encode() for key, text in notes.items()})
    pq.write_table(table, file, compression="zstd", compression_level=19, row_group_size=16_384)
    body = file.read_bytes()
    print(f"{file.name}  {table.num_rows} rows  {len(body)} bytes  sha256 {hashlib.sha256(body).hexdigest()}")


if __name__ == "__main__":
    main()
