"""The author under the rejection rule: whole writings of two networks follow the target's law, whoever drafts.

Seeds were fixed beforehand. FALSE_ALARM bounds how likely a right author is refused in any of the cases (Bonferroni).
"""

from collections import Counter

import numpy as np
import pytest

from checks import nonempty
from chi_square import fit
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.planner import FixedLengthPlanner as FixedLength
from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.rules.coupled import CoupledRule
from htfi.decoding.rules.rejection import EntropyAwareRule, RejectionRule
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.strategies.sampled import SampledStrategy
from htfi.decoding.strategy import AcceptanceRule, DraftStrategy
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FixedField,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    RequestRefused,
)
from tiny_network import TinyNetwork, TinyTokenizer
from writing_laws import law_of_writings

FALSE_ALARM = 1e-4
NUM_TEXTS = 400
TOKENIZER = TinyTokenizer()
CONFIG = DecodingConfig(block_tokens=8, batch_bytes=2**23, cache_bytes=2**20)
SAYS = tuple((ControlToken(name),) for name in ("up", "flat", "down"))
FORM: OutputGrammar = (
    FixedField((ControlToken("view"),)),
    ChoiceField("first", SAYS),
    FixedField((PlainText(" so"),)),
    ChoiceField("then", SAYS),
    ChoiceField("last", SAYS),
    FixedField((ControlToken("/view"),)),
)
LONG: OutputGrammar = (
    FreeTextField("words", 20, ControlToken("end")),
    ChoiceField("first", SAYS),
    FixedField((PlainText(" so it goes"),)),
)


def target() -> TinyNetwork:
    return TinyNetwork(TOKENIZER.vocab_size, 1, sharpness=1.0)


def nearby() -> TinyNetwork:
    """A draft that agrees with the target in part: its head is turned a little."""
    network, other = target(), TinyNetwork(TOKENIZER.vocab_size, 2, sharpness=1.0)
    network._head = network._head + np.float32(0.5) * other._head
    network.digest = other.digest
    return network


def author(
    strategy: DraftStrategy | None, length: int = 2, rule: AcceptanceRule | None = None
) -> LocalGenerator:
    return LocalGenerator(
        target(),
        TOKENIZER,
        "tiny",
        CONFIG,
        strategy=strategy,
        length_planner=FixedLength(length),
        rule=rule or RejectionRule(),
    )


def drawn(*widths: int, **settings: float) -> SampledStrategy:
    return SampledStrategy(KVSessions(nearby(), CONFIG), widths, **settings)


def question(seed: int, form: OutputGrammar = FORM, **sampling: float) -> GenerationRequest:
    return GenerationRequest(
        (ControlToken("news"), PlainText(" it rose")), form, seed=seed, **{"temperature": 2.0, **sampling}
    )


def written(answers: list[Completion | RequestRefused]) -> list[Completion]:
    assert all(isinstance(answer, Completion) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Completion)]


def tokens_of(writer: LocalGenerator, requests: list[GenerationRequest]) -> list[tuple[int, ...]]:
    return [writing.tokens for writing in written(writer.write(requests))]


def p_value(writer: LocalGenerator, num_texts: int = NUM_TEXTS, **sampling: float) -> float:
    law = law_of_writings(author(None, 0), question(0, **sampling))
    counts = Counter(tokens_of(writer, [question(seed, **sampling) for seed in range(num_texts)]))
    assert set(counts) <= set(law)
    return fit([counts[tokens] for tokens in law], list(law.values())).p_value


CASES = {
    "no draft": lambda: author(None, 0),
    "chain": lambda: author(drawn(1)),
    "tree": lambda: author(drawn(2, 2), 3),
    "branches end by entropy": lambda: author(drawn(2, 1, max_nats=1.0), 3),
    "guesses with the shared noise count as certain": lambda: author(
        ChainStrategy(KVSessions(nearby(), CONFIG))
    ),
}
RATE = FALSE_ALARM / (len(CASES) + 2)


@pytest.mark.parametrize("name", ["chain", "tree"])
def test_writings_follow_the_targets_law(name: str):
    assert p_value(CASES[name]()) > RATE


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [{"temperature": 0.6, "top_k": 2}, {"temperature": 1.5, "top_p": 0.8}])
def test_trees_keep_a_truncated_law(sampling: dict[str, float]):
    assert p_value(author(drawn(2, 2), 3), 6000, **sampling) > RATE


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_many_writings_follow_the_targets_law(name: str):
    assert p_value(CASES[name](), 6000) > RATE


def test_the_lossy_option_is_refused_by_the_same_check():
    lossy = RejectionRule(EntropyAwareRule(threshold_nats=0.2, top_n=3, overlap=0.5))
    assert p_value(author(drawn(1), rule=lossy), 200) < RATE


def test_the_same_drafts_give_the_same_writings_alone_or_together():
    requests = [question(seed, LONG) for seed in range(8)]
    for widths, length in (((1,), 4), ((2, 2, 1), 3)):
        together = tokens_of(author(drawn(*widths), length), requests)
        assert together == tokens_of(author(drawn(*widths), length), requests)
        alone = author(drawn(*widths), length)
        assert together == [tokens for request in requests for tokens in tokens_of(alone, [request])]
        assert len(set(together)) > 4


def test_at_temperature_0_the_greedy_writing_comes_of_any_draft():
    greedy = tokens_of(author(None, 0, CoupledRule()), [question(0, LONG, temperature=0.0)])
    for strategy in (None, drawn(1), drawn(3, 2), ChainStrategy(KVSessions(nearby(), CONFIG))):
        assert tokens_of(author(strategy, 3), [question(5, LONG, temperature=0.0)]) == greedy


def test_a_draft_equal_to_the_target_is_never_refused():
    twin = SampledStrategy(KVSessions(target(), CONFIG))
    for writing in nonempty(written(author(twin, 4).write([question(seed, LONG) for seed in range(8)]))):
        for told in nonempty(writing.rounds):
            assert len(told.accepted) == len(told.drafted)


def test_laws_that_were_drawn_from_are_accepted_more_often_than_guesses_without_one():
    requests = [question(seed, LONG) for seed in range(12)]

    def passes(strategy: DraftStrategy) -> int:
        writer = author(strategy, 4)
        tokens_of(writer, requests)
        network = writer.sessions.network
        assert isinstance(network, TinyNetwork)
        return network.num_passes

    class Silent(SampledStrategy):
        def speculate(self, sequences: list[SequenceState], lengths: list[int]) -> list[DraftTree]:
            trees = super().speculate(sequences, lengths)
            for tree in trees:
                tree.draft_probs.clear()
            return trees

    one, certain = drawn(1), Silent(KVSessions(nearby(), CONFIG), (1,))
    assert passes(one) < passes(certain)
    assert passes(drawn(3, 2, 1)) < passes(drawn(1))


def test_a_draft_that_is_not_finite_costs_only_speed():
    broken = nearby()
    broken._head = broken._head * np.float32(np.nan)
    strategy = SampledStrategy(KVSessions(broken, CONFIG), (2, 1))
    requests = [question(seed, LONG) for seed in range(4)]
    assert tokens_of(author(strategy, 3), requests) == tokens_of(author(None, 0), requests)


def test_a_target_that_is_not_finite_is_refused():
    writer = author(drawn(2, 1), 3)
    network = writer.sessions.network
    assert isinstance(network, TinyNetwork)
    network._head = network._head * np.float32(np.nan)
    (answer,) = writer.write([question(0, LONG)])
    assert isinstance(answer, RequestRefused)


def test_every_row_is_free_again_when_the_answers_are_written():
    strategy = drawn(2, 2)
    writer = author(strategy, 3)
    tokens_of(writer, [question(seed, LONG) for seed in range(10)])
    for sessions in (writer.sessions, strategy._rows.sessions):
        assert sessions.num_rows_free(40) == KVSessions(target(), CONFIG).num_rows_free(40)


def test_widths_below_one_are_refused():
    with pytest.raises(InvalidInput, match="widths"):
        drawn(2, 0)
