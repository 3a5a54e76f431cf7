"""QuickFIX on the other side: we are initiator and acceptor, with orders each way. `make test-all` installs it."""

import sys
from pathlib import Path

import pytest

from fix_exchange import check_exchange

COUNTERPARTY = Path(__file__).parents[1] / "quickfix_counterparty.py"


@pytest.mark.slow
@pytest.mark.parametrize("version", ["FIX.4.4", "FIX.5.0SP2"])
@pytest.mark.parametrize("role", ["initiator", "acceptor"])
def test_two_thousand_orders_each_way_with_quickfix(tmp_path: Path, role: str, version: str) -> None:
    check_exchange(tmp_path, [sys.executable, str(COUNTERPARTY)], tmp_path, role, version, 2_000)
