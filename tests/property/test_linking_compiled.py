"""The names that a text holds are the same compiled and by patterns."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.narrative.encoding import compiled
from htfi.narrative.encoding.linking import EntityLinker, EntityMention

STAGED = Path("../shared/data/text_price")
FILES = (("reuters_news_2006_2013.parquet", "lead"), ("stocknet_tweets.parquet", "text"))

pytestmark = pytest.mark.skipif(compiled.linking is None, reason="built without a C compiler")

LINKER = EntityLinker({"AAA": ["Alpha Beta", "~Target"], "BB.N": ["AT&T", "O'Neill's"]})
WORD_LIST = """
Apple Apple's apple APPLE Target target Target's said shares Alpha Beta AT&T AT&T's O'Neill's $AAPL $A.B $ $aapl- AAPL.O
BRKa.N BRKb.N. 7203.T U.S. U.S U.K. U.N.A DL.PA D.AX GE.N .GE.N NYSE: XYZ Nasdaq:ABC.D EUR/USD EURUSD=X EURUSDX EUR/US
xEURUSD /EURUSD Fed ECB S&P 500 gold oil dollar yen Co Inc Corp General Electric Bank of America ’s Apple’s _ .. é Ｘ"""
texts = st.lists(
    st.sampled_from(WORD_LIST.split()) | st.text(st.sampled_from("ABnU.S$:/=&'* -é"), max_size=9), max_size=20
).map(" ".join)


def differences(found: list[str]) -> list[str]:
    def read() -> list[list[EntityMention]]:
        return [LINKER.mentions(text, ["NONE"]) for text in found]  # none is kept where a symbol is expected

    linked = read()
    with pytest.MonkeyPatch().context() as missing:
        missing.setattr(compiled, "linking", None)
        alone = read()
    return [text for text, one, other in zip(found, linked, alone, strict=True) if one != other]


@settings(max_examples=150, deadline=None)
@given(texts)
def test_any_text_names_the_same(text: str) -> None:
    assert differences([text]) == []


@pytest.mark.parametrize(("file", "column"), FILES)
def test_staged_texts_name_the_same(file: str, column: str) -> None:
    if not (STAGED / file).is_file():
        pytest.skip(f"{file} is not here")
    parquet: Any = import_module("pyarrow.parquet")
    every: list[str | None] = parquet.read_table(STAGED / file, columns=[column]).to_pydict()[column]
    found = [text for text in every[:: max(len(every) // 3_000, 1)] if text]
    assert len(found) > 2_000
    assert differences(found) == []
