"""The longest hourly panel of one pair, which priors are learnt on."""

from pathlib import Path

import numpy as np

from htfi.domain.time import NS_PER_MS, parse_duration
from htfi_eval.eval.price_grid import FIELDS, Prices, on_grid
from htfi_eval.eval.prices import read_rows


def euro_dollar(data: Path) -> Prices:
    """EURUSD by the hour from 2007 on, the middle of bid and ask."""
    rows = read_rows(data / "panels" / "eurusd_hourly_bidask_2007_2018.parquet")
    fields = {name: 0.5 * (rows[f"bid_{name}"] + rows[f"ask_{name}"]) for name in FIELDS}
    ends_ns = rows["ts"].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS + parse_duration("1h")
    return on_grid("eurusd", rows["symbol"], ends_ns, ends_ns, fields, (), "1h")
