"""Fills and positions against the other side's: every difference is a break, nothing else is."""

from decimal import Decimal

import pytest

from htfi.domain.errors import InvalidInput
from htfi.execution.fix.drop_copy import read_drop_copy
from htfi.execution.reconciliation import Break, BreakKind, Execution, compare_executions, compare_positions

OURS = Execution("E1", "d7", "IBM", 1, 100, Decimal("101.25"))
FILL = "8=FIX.4.4|35=8|17=E1|150=F|11=ab-d7|55=IBM|54=1|32=100|31=101.250|60=20260302-10:00:00"


def breaks_of(*lines: str, ours: tuple[Execution, ...] = (OURS,)) -> list[Break]:
    return compare_executions(ours, read_drop_copy(lines, "ab-", "drop.fix"), ["d7"])


def test_the_same_fill_is_no_break_however_it_is_written() -> None:
    trade = (
        "8=FIX.4.4|35=AE|571=T1|570=N|17=E1|55=IBM|32=100|31=101.25|75=20260302|552=1|54=1|37=V1|11=ab-d7|"
    )
    assert breaks_of(FILL) == []
    assert breaks_of(FILL.replace("|", "\x01") + "\x01", FILL, "", "8=FIX.4.4|35=0|") == []
    assert breaks_of(trade) == []


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        ((), [BreakKind.MISSING_THERE]),
        ((FILL, FILL.replace("17=E1", "17=E2")), [BreakKind.MISSING_HERE]),
        ((FILL, FILL.replace("17=E1|150=F|11=ab-d7", "17=E2|150=F|11=ab-d8")), [BreakKind.UNKNOWN]),
        ((FILL, FILL.replace("17=E1|150=F|11=ab-d7", "17=E2|150=F|11=d7")), [BreakKind.UNKNOWN]),
        ((FILL.replace("32=100", "32=90"),), [BreakKind.QUANTITY]),
        ((FILL.replace("31=101.250", "31=101.26"),), [BreakKind.PRICE]),
        ((FILL.replace("54=1", "54=2").replace("IBM", "SPX"),), [BreakKind.INSTRUMENT, BreakKind.SIDE]),
        ((FILL, "8=FIX.4.4|35=8|17=E3|150=H|19=E1|11=ab-d7|55=IBM|54=1"), [BreakKind.MISSING_THERE]),
        (
            (FILL, FILL.replace("17=E1|150=F", "17=E3|150=G|19=E1")),
            [BreakKind.MISSING_HERE, BreakKind.MISSING_THERE],
        ),
    ],
)
def test_each_difference_is_a_break_of_its_kind(lines: tuple[str, ...], kinds: list[BreakKind]) -> None:
    assert [one.kind for one in breaks_of(*lines)] == kinds


def test_a_break_says_what_each_side_has() -> None:
    (found,) = breaks_of(FILL.replace("31=101.250", "31=101.26"))
    assert found == Break(
        BreakKind.PRICE, "E1 of order d7", "bought 100 IBM at 101.25", "bought 100 IBM at 101.26"
    )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("execution of IBM", "line 2: it is no FIX message"),
        (FILL.replace("|31=101.250", ""), "line 2: a trade without LastPx"),
        (FILL.replace("32=100", "32=x"), "line 2: field 32 is not a number"),
        (FILL.replace("150=F", "150=H"), "line 2: a bust or correction without ExecRefID"),
        (FILL.replace("54=1", "54=9"), r"line 2: Side \(54\) is 9"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str, what: str) -> None:
    with pytest.raises(InvalidInput, match=f"drop.fix {what}"):
        read_drop_copy([FILL, line], "ab-", "drop.fix")


def test_positions_differ_by_account_or_altogether() -> None:
    ours = {("A", "IBM"): 100, ("B", "IBM"): -40, ("A", "SPX"): 5}
    theirs = {("A", "IBM"): 60, ("A", "SPX"): 5}
    assert [one.subject for one in compare_positions(ours, theirs, with_accounts=True)] == ["A IBM", "B IBM"]
    assert compare_positions(ours, {("", "IBM"): 60, ("", "SPX"): 5}, with_accounts=False) == []
    (found,) = compare_positions(ours, {("", "IBM"): 60}, with_accounts=False)
    assert found == Break(BreakKind.POSITION, "SPX", "5 lots", "0 lots")
