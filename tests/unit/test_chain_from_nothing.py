"""A draft may begin before anything is settled: an edge's does, where the form forces nothing at its start."""

import pytest

from htfi.adapters.native.network import is_compiled
from htfi.decoding.config import DecodingConfig
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.domain.generation import ControlToken, FreeTextField, GenerationRequest, PlainText, RequestRefused
from htfi.wiring.models.config import ModelsConfig
from htfi.wiring.models.readers import open_model_pair

REQUEST = GenerationRequest(
    (ControlToken("news"), PlainText("ACME raises its outlook")),
    (FreeTextField("words", 20, ControlToken("/s")),),
    seed=5,
    temperature=1.0,
)


@pytest.mark.parametrize(
    "engine",
    ["general", pytest.param("in C", marks=pytest.mark.skipif(not is_compiled(), reason="not compiled"))],
)
def test_a_chain_from_nothing_is_what_the_draft_says_alone(engine: str) -> None:
    _, draft = open_model_pair(ModelsConfig())
    of = (
        draft.drafting_generator(DecodingConfig())
        if engine == "in C"
        else draft.plain_generator(DecodingConfig())
    )
    (alone,) = of.write([REQUEST])
    assert not isinstance(alone, RequestRefused)
    for lengths in ([20], [1, 19], [3, 0, 20], [7, 7, 7]):
        assert _drafted(of, lengths) == list(alone.tokens), lengths


def _drafted(of: LocalGenerator, lengths: list[int]) -> list[int]:
    """What a chain drafts in slices, each taken for settled."""
    asked = of.tokenize(REQUEST)
    assert not isinstance(asked, RequestRefused)
    stem, chain = (
        SequenceState(asked, list(asked.forced_prefix), asked.start_state),
        ChainStrategy(of.sessions),
    )
    for length in lengths:
        (tree,) = chain.speculate([stem], [length])
        stem.tokens += tree.tokens
        stem.state = tree.states[-1] if tree.states else stem.state
    chain.finish(stem)
    return stem.tokens


def test_a_chain_may_be_asked_for_nothing_before_it_begins() -> None:
    _, draft = open_model_pair(ModelsConfig())
    of = draft.drafting_generator(DecodingConfig())
    asked = of.tokenize(REQUEST)
    assert not isinstance(asked, RequestRefused)
    stem, chain = (
        SequenceState(asked, list(asked.forced_prefix), asked.start_state),
        ChainStrategy(of.sessions),
    )
    first, again = (chain.speculate([stem], [4])[0].tokens for _ in range(2))
    assert first == again
    assert len(first) == 4
