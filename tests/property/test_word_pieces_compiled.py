"""Ids and spans of a text are the same from compiled word pieces and from the general tokenizer."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi import models
from htfi.adapters.tokenizer import hugging_face
from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.checkpoint.folder import TOKENIZER

STAGED = Path("../shared/data/text_price")
FILES = (("reuters_news_2006_2013.parquet", "lead"), ("stocknet_tweets.parquet", "text"))

pytestmark = pytest.mark.skipif(hugging_face.word_pieces_core is None, reason="built without a C compiler")


def general() -> HuggingFaceTokenizer:
    """The shipped vocabulary without compiled pieces."""
    with pytest.MonkeyPatch().context() as missing:
        missing.setattr(hugging_face, "word_pieces_core", None)
        return HuggingFaceTokenizer(models.FACTS / TOKENIZER)


GENERAL, COMPILED = general(), HuggingFaceTokenizer(models.FACTS / TOKENIZER)
WORD_LIST = """
profit's unprofitable Reuters) ##ing # ## 3.5% U.S.-based [SEP] [CLS] [UNK] a_b AT&T $1,000 qwxzvkjq IBM.N
antidisestablish é ü 中 \x00 \x7f \t … ’s"""
texts = st.lists(
    st.sampled_from(WORD_LIST.split())
    | st.text(st.characters(max_codepoint=127), max_size=9)
    | st.text(max_size=4),
    max_size=20,
).map(" ".join)


def pieces_of(tokenizer: HuggingFaceTokenizer, text: str) -> tuple[list[int], list[list[int]]]:
    ids, spans = tokenizer.encode_with_spans(text)
    assert (spans.dtype, spans.shape) == (np.int64, (len(ids), 2))
    return ids, spans.tolist()


def differences(found: list[str]) -> list[str]:
    return [
        text
        for text in found
        if pieces_of(COMPILED, text) != pieces_of(GENERAL, text)
        or COMPILED.encode(text) != GENERAL.encode(text)
    ]


@settings(max_examples=200, deadline=None)
@given(texts)
def test_any_text_has_the_same_pieces(text: str) -> None:
    assert differences([text, text * 12]) == []


@pytest.mark.parametrize(("file", "column"), FILES)
def test_staged_texts_have_the_same_pieces(file: str, column: str) -> None:
    if not (STAGED / file).is_file():
        pytest.skip(f"{file} is not here")
    parquet: Any = import_module("pyarrow.parquet")
    every: list[str | None] = parquet.read_table(STAGED / file, columns=[column]).to_pydict()[column]
    found = [text for text in every[:: max(len(every) // 2_000, 1)] if text]
    assert len(found) > 1_000
    assert differences(found) == []


def test_plain_news_is_divided_by_compiled_code() -> None:
    divide = COMPILED.__dict__["_pieces"].encode
    ids, spans = GENERAL.encode_with_spans("Shares of AT&T rose 3.5%")
    assert divide("Shares of AT&T rose 3.5%") == (ids, spans.tobytes())
    assert divide("[SEP]") is None
    assert divide("Société") is None
