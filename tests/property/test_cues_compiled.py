"""Words of a text by their hashes, and what heads make of them, are the same compiled and in Python, bit for bit."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.narrative.encoding import compiled
from htfi.narrative.encoding.heads import cue_ids
from htfi.wiring.encoder import open_heads

STAGED = Path("../shared/data/text_price")
FILES = (("reuters_news_2006_2013.parquet", "lead"), ("stocknet_tweets.parquet", "text"))

pytestmark = pytest.mark.skipif(compiled.cues is None, reason="built without a C compiler")

WORD_LIST = """
don't can't n't an't isn't isn'tx http https http://a.b https://x/y?z. httpx $abc $a.b. $abcdefgh.ij $.
$1 @user @_x @ +5% -3.2 percent 1,000 pct 5 bps 7bp 7bpx 3 per cent 2percentile 4. 5,. +x -- ?! profit Q1
up_down A\x00b ’ don’t 🚀 ± ½ ５ K"""
texts = st.lists(
    st.sampled_from(WORD_LIST.split())
    | st.text(st.sampled_from("ant'st $@+-.,%12 bpshttp:/_?!é"), max_size=9),
    max_size=120,
).map(" ".join)


def differences(found: list[str]) -> list[str]:
    heads = open_heads().heads.values()

    def read() -> list[tuple[tuple[int, ...], list[bytes]]]:
        ids = [cue_ids.__wrapped__(text) for text in found]
        return [(one, [np.asarray(head.cue_logits([one])).tobytes() for head in heads]) for one in ids]

    compiled_ids = read()
    with pytest.MonkeyPatch().context() as missing:
        missing.setattr(compiled, "cues", None)
        return [text for text, one, other in zip(found, compiled_ids, read(), strict=True) if one != other]


@settings(max_examples=60, deadline=None)
@given(texts)
def test_any_text_has_the_same_cues(text: str) -> None:
    assert differences([text, text.lower()]) == []


@pytest.mark.parametrize(("file", "column"), FILES)
def test_staged_texts_have_the_same_cues(file: str, column: str) -> None:
    if not (STAGED / file).is_file():
        pytest.skip(f"{file} is not here")
    parquet: Any = import_module("pyarrow.parquet")
    every: list[str | None] = parquet.read_table(STAGED / file, columns=[column]).to_pydict()[column]
    found = [text for text in every[:: max(len(every) // 1_500, 1)] if text]
    assert len(found) > 1_000
    assert differences(found) == []


def test_every_number_of_known_words_has_the_same_root() -> None:
    num = np.arange(1, 193)
    assert (np.sqrt(num).astype(np.float32) == [np.float32(int(one) ** 0.5) for one in num]).all()
