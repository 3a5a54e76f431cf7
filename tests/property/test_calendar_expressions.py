"""The mapping language of cells: any text is read or refused in one line, and what is read computes what it says."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htfi.calendar.expressions import MAX_CHARS, parse_expression
from htfi.calendar.figures import WrittenFigure, read_figure
from htfi.domain.errors import InvalidInput

COLUMNS = {"a": "225K", "b": "-0.3%", "c": "4-1/4", "d": "", "e": "USD"}
VALUES = {"a": 225_000.0, "b": -0.3, "c": 4.25}


def read_or_refused(text: str) -> str:
    """'' where it is read and evaluated, else why not."""
    try:
        parse_expression(text).value(COLUMNS)
    except InvalidInput as error:
        return str(error) or "no reason"
    return ""


@given(st.text(alphabet="abcde+-*/() \"'`0123456789.%&|$\n\\_é", max_size=60))
def test_any_text_is_an_expression_or_refused_in_one_line(text: str) -> None:
    assert "\n" not in read_or_refused(text)


@st.composite
def sums(draw: st.DrawFn, depth: int = 3) -> tuple[str, float | None]:
    """An expression in brackets and what it is."""
    if depth == 0 or draw(st.booleans()):
        if draw(st.booleans()):
            name = draw(st.sampled_from("abc"))
            return name, VALUES[name]
        number = draw(st.integers(0, 999))
        return str(number), float(number)
    (left, one), (right, other) = draw(sums(depth - 1)), draw(sums(depth - 1))
    sign = draw(st.sampled_from("+-*/"))
    text = f"({left} {sign} {right})"
    if one is None or other is None or (sign == "/" and other == 0.0):
        return text, None
    value = {"+": one + other, "-": one - other, "*": one * other, "/": one / (other or 1.0)}[sign]
    return text, value if math.isfinite(value) else None


@given(sums())
def test_an_expression_computes_what_it_says(made: tuple[str, float | None]) -> None:
    text, value = made
    assert parse_expression(text).value(COLUMNS) == value


@given(st.lists(st.sampled_from(["e", '" "', "'x'", "a"]), min_size=1, max_size=8))
def test_texts_are_joined_as_they_stand(parts: list[str]) -> None:
    expected = "".join(
        {"e": "USD", "a": "225K", '" "': " ", "'x'": "x", '""': ""}[part] for part in [*parts, '""']
    ).strip()
    assert parse_expression(" + ".join([*parts, '""'])).value(COLUMNS) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "ends where a column, a number or a text is needed"),
        ("a -", "ends where a column, a number or a text is needed"),
        ("a - - ", "ends where"),
        ("a b", "character 3: 'b' where an operator"),
        ("(a", "ends where ')' is needed"),
        ("a ** b", "character 4: '*' where a column"),
        ("a % b", "character 3: '%' is not understood"),
        ("__import__('os').system('x')", "character 17: '.' is not understood"),
        ("a.real()", "where an operator"),
        ('e + " " - a', "joins texts"),
        ('e + " " + 3', "joins texts"),
        ("(" * 400 + "a" + ")" * 400, "the maximum is"),
        ("(" * 100 + "a" + ")" * 100, "nested more than"),
        ("a" * (MAX_CHARS + 1), "the maximum is"),
        ("a\n- b", "one line"),
        ("e - a", ""),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    if not said:
        with pytest.raises(InvalidInput, match="'USD' is not a figure"):
            parse_expression(text).value(COLUMNS)
        return
    with pytest.raises(InvalidInput) as error:
        parse_expression(text)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_empty_cell_makes_an_empty_result() -> None:
    assert parse_expression("a - d").value(COLUMNS) is None
    assert parse_expression("a / (b - b)").value(COLUMNS) is None
    assert parse_expression("-a").value(COLUMNS) == -225_000.0
    assert parse_expression("`odd name (%)` * 2").value({"odd name (%)": "1.5%"}) == 3.0
    assert parse_expression("actual - forecast").columns == ("actual", "forecast")


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("225K", 225_000.0, "K"),
        ("-598K", -598_000.0, "K"),
        ("0.3%", 0.3, "%"),
        ("<0.25%", 0.25, "%"),
        ("4-1/4", 4.25, ""),
        ("4 1/4", 4.25, ""),
        ("1/4", 0.25, ""),
        ("1.2B", 1.2e9, "B"),
        ("$1.2bn", 1.2e9, "B"),
        ("-£0.7 mln", -0.7e6, "M"),
        ("2.3T", 2.3e12, "T"),
        ("1,234.5", 1234.5, ""),
        ("0,3%", 0.3, "%"),
        ("(1.2)", -1.2, ""),
        ("−0.1%", -0.1, "%"),
        ("1.2% (R+)", 1.2, "%"),
        ("1.76|2.1", 1.76, ""),
        ("+12", 12.0, ""),
        (3, 3.0, ""),
    ],
)  # fmt: skip
def test_figures_are_read_as_vendors_write_them(text: object, value: float, unit: str) -> None:
    assert read_figure(text) == WrittenFigure(pytest.approx(value), unit)


@pytest.mark.parametrize("text", ["", "-", "n/a", "0-9-0", "00/1/8", "7-0-2", None, True, math.nan])
def test_votes_and_empty_cells_are_no_figures(text: object) -> None:
    assert read_figure(text) is None


@pytest.mark.parametrize(
    "text", ["Pass", "0..7M", "1-2", "3/0", "17.2%%", "9" * 30, "1e400", "nan%", "--3", "3 apples"]
)
def test_what_is_no_figure_is_said(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"figure|divides|larger"):
        read_figure(text)


@given(st.one_of(st.text(max_size=50), st.integers(), st.floats(), st.none(), st.binary(max_size=9)))
def test_any_cell_is_a_figure_none_or_refused_in_one_line(cell: object) -> None:
    found, refused = None, ""
    try:
        found = read_figure(cell)
    except InvalidInput as error:
        refused = str(error)
    assert refused.isprintable()
    assert found is None or math.isfinite(found.value)
