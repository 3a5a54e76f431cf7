"""Tree, Jacobi and look-up on tiny networks: what they guess, what it saves, and what they leave behind."""

from collections.abc import Sequence

import numpy as np
import pytest

from checks import nonempty
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.planner import FixedLengthPlanner as FixedLength
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.strategies.jacobi import JacobiStrategy
from htfi.decoding.strategies.lookup import (
    LookupConfig,
    LookupStrategy,
    NgramCounts,
    UnigramCounts,
    blended_log_probs,
)
from htfi.decoding.strategies.tree import TreeDraftConfig, TreeStrategy
from htfi.decoding.strategy import DraftStrategy
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    RequestRefused,
)
from tiny_network import TinyNetwork, TinyTokenizer

TOKENIZER = TinyTokenizer()
VOCAB = TOKENIZER.vocab_size
PATH: OutputGrammar = tuple(
    ChoiceField(f"s{i}", tuple((ControlToken(f"p{k}"),) for k in range(9))) for i in range(24)
)
WORDS: OutputGrammar = (FreeTextField("words", 30, ControlToken("end")),)


def author(
    strategy: DraftStrategy | None = None, length: int = 0, network: TinyNetwork | None = None
) -> LocalGenerator:
    network = network or TinyNetwork(VOCAB)
    config = DecodingConfig(batch_bytes=2**22)
    return LocalGenerator(
        network, TOKENIZER, "tiny", config, strategy=strategy, length_planner=FixedLength(length)
    )


def drafts(seed: int = 0) -> KVSessions:
    return KVSessions(TinyNetwork(VOCAB, seed), DecodingConfig(batch_bytes=2**22))


def asked(num: int = 6, form: OutputGrammar = PATH, temperature: float = 1.0) -> list[GenerationRequest]:
    return [
        GenerationRequest((PlainText("abc up"),), form, seed, temperature, max_draft=None)
        for seed in range(num)
    ]


def written(engine: LocalGenerator, requests: Sequence[GenerationRequest]) -> list[Completion]:
    answers = engine.write(requests)
    assert all(isinstance(answer, Completion) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Completion)]


def num_rounds(answers: Sequence[Completion]) -> int:
    return sum(len(answer.rounds) for answer in answers)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_tree_of_the_target_itself_is_followed_to_its_end(temperature: float):
    strategy = TreeStrategy(drafts(), TreeDraftConfig(min_reach=0.0))
    answers = written(author(strategy, 5), asked(temperature=temperature))
    for answer in nonempty(answers):
        assert num_rounds([answer]) == 4  # one token of the prompt, then five guesses and one more a pass
        for told in answer.rounds[:-1]:
            assert len(told.accepted) == 5


def test_a_draft_reads_a_level_of_all_branches_in_one_pass():
    sessions = drafts()
    strategy = TreeStrategy(sessions, TreeDraftConfig(num_ranks=4, width=4.0, min_reach=0.0))
    answers = written(author(strategy, 6), asked(1))
    drafted = [told for told in answers[0].rounds if len(told.drafted) > 6]
    assert drafted
    assert any(told.parents.count(-1) > 1 for told in drafted)  # siblings after the settled text
    assert any(len(set(told.parents)) < len(told.parents) - 2 for told in drafted)
    network = sessions.network
    assert isinstance(network, TinyNetwork)
    assert network.num_passes <= 6 * num_rounds(answers) + 1


def test_branches_read_level_by_level_have_the_logits_of_each_branch_alone():
    rng = np.random.Generator(np.random.PCG64(5))
    sessions = drafts()
    prompt, tokens = [3, 1, 4, 1, 5], [7, 8, 9, 10, 11, 12, 13]
    parents = [-1, -1, 0, 1, 1, 2, 3]
    levels = [(0, 2), (2, 5), (5, 6), (6, 7)]
    row, other = sessions.open(prompt, 30).row, sessions.open(prompt, 60).row
    found: list[np.ndarray] = []
    for begin, end in levels:
        beside = rng.integers(0, 20, 3).tolist()
        after = sessions.extend([row, other], [tokens[begin:end], beside], [parents[:end], [-1, 0, 1]])
        found += list(after[0])
    for node, logits in enumerate(found):
        branch, at = [tokens[node]], parents[node]
        while at >= 0:
            branch, at = [tokens[at], *branch], parents[at]
        alone = sessions.open([*prompt, *branch], 30)
        np.testing.assert_allclose(logits, alone.logits, atol=1e-5)
        sessions.close(alone.row)
    sessions.keep_branch(row, len(prompt), [1, 3, 6])
    (after,) = sessions.extend([row], [[2]])
    again = sessions.open([*prompt, 8, 10, 13, 2], 30)
    np.testing.assert_allclose(after[0], again.logits, atol=1e-5)


def test_wrong_guesses_of_a_tree_are_fewer_the_more_reach_they_need():
    counts: list[int] = []
    for least_reach in (0.0, 0.1, 0.4):
        config = TreeDraftConfig(num_ranks=3, width=3.0, min_reach=least_reach)
        answers = written(author(TreeStrategy(drafts(9), config), 6), asked(12))
        counts.append(sum(len(told.drafted) for answer in answers for told in answer.rounds))
    assert counts[0] > counts[1] > counts[2]


def test_jacobi_from_nothing_guesses_what_the_target_said_past_the_first_change():
    plain = written(author(), asked())
    answers = written(author(JacobiStrategy(), 8), asked())
    assert [answer.tokens for answer in answers] == [answer.tokens for answer in plain]
    assert num_rounds(answers) < 0.8 * num_rounds(plain)


def test_jacobi_asks_its_draft_only_where_nothing_was_said():
    plain, sessions = written(author(), asked()), drafts(9)
    answers = written(author(JacobiStrategy(ChainStrategy(sessions)), 8), asked())
    chains = written(author(ChainStrategy(drafts(9)), 8), asked())
    assert [answer.tokens for answer in answers] == [answer.tokens for answer in plain]
    assert num_rounds(answers) < num_rounds(chains)
    assert sessions.arena.num_rows == 0


def test_look_up_goes_on_as_the_prompt_went():
    letters = PlainText("abcdefghijklmnopqrstuvwxyz")
    prompt, form = (letters, letters, letters), (FreeTextField("words", 12, PlainText("|")),)
    text = author().vocabulary.encode(prompt)
    lookup = LookupConfig(num_recent_tokens=0, tree=TreeDraftConfig(1, 1.0, 0.0))
    answers = written(
        author(LookupStrategy(VOCAB, lookup), 2), [GenerationRequest(prompt, form, s, 3.0) for s in range(40)]
    )
    known = [answer for answer in answers if answer.tokens[0] in text[:26] and answer.rounds]
    goes_on = [answer.rounds[0].drafted[0] == (answer.tokens[0] + 1) % 26 for answer in known]
    assert len(known) >= 8
    assert sum(goes_on) > len(known) / 2  # the noise may prefer a token that the prompt had nowhere


def test_look_up_knows_an_answer_that_was_given_before_and_forgets_what_is_old():
    requests = asked(3, WORDS, temperature=0.0)[:1]
    plain = num_rounds(written(author(), requests))
    engine = author(LookupStrategy(VOCAB), 8)
    first, second = (num_rounds(written(engine, requests)) for _ in range(2))
    assert second < plain / 2
    assert second < first
    nothing = author(LookupStrategy(VOCAB, LookupConfig(num_recent_tokens=0)), 8)
    assert num_rounds(written(nothing, requests)) == num_rounds(written(nothing, requests)) == first


def test_counts_taken_back_leave_nothing_and_a_longer_context_decides():
    book, text = NgramCounts(3), [1, 2, 3, 1, 2, 4, 5, 2, 4]
    book.add(text, 2)
    assert book.after((1, 2)) == {3: 1, 4: 1}
    weights = np.exp(blended_log_probs(UnigramCounts(8), (book,), [5, 2]))
    assert weights.argmax() == 4
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-5)
    book.remove(text, 2)
    assert all(not book.after(tuple(text[begin:end])) for begin in range(9) for end in range(begin, 10))


class NanBesideFirst(TinyNetwork):
    """What a pass gives for branches that do not follow the first child of each node is NaN."""

    num_spoiled = 0

    def forward(self, ids, positions, mask, keys, values):
        out = super().forward(ids, positions, mask, keys, values)
        num_new = ids.shape[1]
        for row, sees in enumerate(mask[:, :, -num_new:] == 0.0):
            first: dict[int, int] = {}
            good = {-1}
            for node in range(num_new):
                parent = int(sees[node, :node].nonzero()[0].max(initial=-1))
                if parent in good and first.setdefault(parent, node) == node:
                    good.add(node)
                elif keys.shape[3]:
                    self.num_spoiled += 1
                    out.logits[row, node] = np.nan
                    out.keys[:, row, :, node] = out.values[:, row, :, node] = np.nan
        return out


def test_a_rejected_branch_that_is_not_finite_spoils_no_row():
    plain = written(author(), asked(8))
    network = NanBesideFirst(VOCAB)
    # The first branch is the target's own, so that none of the others stands.
    engine = author(
        TreeStrategy(drafts(), TreeDraftConfig(num_ranks=3, width=3.0, min_reach=0.0)), 5, network
    )
    for _ in range(2):
        answers = written(engine, asked(8))
        assert [answer.tokens for answer in answers] == [answer.tokens for answer in plain]
    assert network.num_spoiled > 50
    assert np.isfinite(engine.sessions.arena.keys).all()


@pytest.mark.parametrize("form", [PATH, WORDS])
def test_nothing_of_a_finished_answer_is_kept(form: OutputGrammar):
    sessions = drafts(9)
    tree, look = TreeStrategy(sessions), LookupStrategy(VOCAB)
    for strategy in (tree, look, JacobiStrategy(TreeStrategy(sessions)), JacobiStrategy(look)):
        answers = author(strategy, 4).write(
            [*asked(5, form), GenerationRequest((PlainText(" the" * 600),), form)]
        )
        assert isinstance(answers[-1], RequestRefused)
        for held in (vars(strategy).get(name, {}) for name in ("_growths", "_texts", "_windows")):
            assert not held
    assert sessions.arena.num_rows == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: TreeDraftConfig(num_ranks=0),
        lambda: TreeDraftConfig(width=0.5),
        lambda: TreeDraftConfig(min_reach=1.0),
        lambda: LookupConfig(order=0),
        lambda: LookupConfig(num_recent_tokens=-1),
        lambda: JacobiStrategy(window=0),
    ],
)
def test_settings_out_of_range_are_refused(make):
    with pytest.raises(InvalidInput, match="≥"):
        make()
