"""Speculative-speculative decoding in one process: the blocks of chain speculation, sooner; the answers of plain."""

import numpy as np
import pytest

from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.outcomes.drafter import FanOut, OutcomeDrafter
from htfi.decoding.strategies.outcomes.strategy import OutcomeStrategy
from htfi.decoding.strategies.outcomes.tree import next_epoch, read_continuation
from htfi.domain.errors import InvalidInput
from outcome_pair import (
    CONFIG,
    PATH,
    VIEW,
    WORDS,
    InProcessDraft,
    author,
    chain,
    drafter,
    network,
    requests,
    written,
)


@pytest.mark.parametrize("form", [PATH, VIEW])
@pytest.mark.parametrize("temperature", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("ranked_by", ["noise", "probability"])
@pytest.mark.parametrize("num_steps", [0, 1, 7])
def test_answers_and_rounds_equal_those_of_chain_speculation(form, temperature, ranked_by, num_steps):
    asked = requests(6, form, temperature)
    plain = written(author(None).write(asked))
    chained = written(author(chain()).write(asked))
    ahead = written(author(OutcomeStrategy(InProcessDraft(drafter(ranked_by), num_steps))).write(asked))
    assert [one.tokens for one in ahead] == [one.tokens for one in plain]
    assert [one.rounds for one in ahead] == [one.rounds for one in chained]


def test_the_noise_finds_more_than_twice_the_outcomes_that_probability_finds():
    rates = {}
    for ranked_by in ("noise", "probability"):
        strategy = OutcomeStrategy(InProcessDraft(drafter(ranked_by, FanOut(max_outcomes=4)), num_steps=6))
        one_by_one = author(strategy)
        for request in requests(20, WORDS):
            one_by_one.write([request])
        rates[ranked_by] = strategy.hits.hits / (strategy.hits.hits + strategy.hits.misses)
    assert rates["noise"] > 2 * rates["probability"] > 0


def test_hits_are_counted_and_save_passes_of_the_draft():
    waited = {}
    for num_steps in (0, 9):
        ahead = InProcessDraft(drafter(), num_steps)
        strategy = OutcomeStrategy(ahead)
        author(strategy).write(requests(1))
        waited[num_steps] = ahead.num_waited
    hits = strategy.hits
    assert hits.hits > 0
    assert waited[9] < waited[0]


def test_the_cache_holds_what_would_be_drafted_after_each_outcome():
    ahead = _joined(length=4)
    words = _worked(ahead, num_steps=12)
    stem_tokens = ahead.trees[0].sequence.tokens
    block = read_continuation(words, 1)
    tree = ahead.trees[0]
    begun = [
        (branch.at, branch.token, branch) for branch in tree.branches if branch.tip and branch.num_chosen
    ]
    assert len(begun) > 5
    for at, token, _ in begun:
        said = [*block[: at.position - tree.root.position], token]
        cached = read_continuation(words, 1, said)
        fresh = _joined(length=len(cached), tokens=[*stem_tokens, *said])
        _worked(fresh, num_steps=len(cached) + 1)
        assert fresh.trees[0].chain()[: len(cached)] == cached


def test_an_outcome_ends_the_round_and_all_of_its_cache():
    ahead = _joined(length=4)
    words = _worked(ahead, num_steps=12)
    block, num_nodes = read_continuation(words, 1), len(words)
    assert num_nodes > 10
    assert ahead.verified(0, [*block[:2], _other(ahead, block, 2)])
    kept = ahead.trees[0].unpublished_words(2)
    assert 0 < len(kept) < num_nodes
    assert read_continuation(kept, 1) == []  # words of another round are not read
    assert read_continuation(kept, 2)
    assert read_continuation(kept, 2, [block[2]]) is None or kept[0] >> 48 == 2


def test_the_drafted_token_itself_is_never_ranked_where_it_was_refused():
    ahead = _joined(length=4)
    _worked(ahead, num_steps=12)
    tree = ahead.trees[0]
    opens, num_chosen = tree.block()
    refused = {(id(branch.at), branch.token) for branch in tree.branches}
    assert num_chosen == 4
    assert all((id(node), node.own.token) not in refused for node in opens[:4])


def test_words_of_an_earlier_round_are_not_read_when_epochs_begin_anew():
    assert next_epoch(0) == 1
    assert next_epoch(0xFFFF) == 1
    assert read_continuation([1 << 48 | 1 << 47 | 7], 2) == []


def test_a_stem_without_room_is_not_drafted_for():
    small = OutcomeDrafter(KVSessions(network(is_draft=True), CONFIG), fan=FanOut(max_nodes=10**6))
    strategy = OutcomeStrategy(InProcessDraft(small, 3))
    asked = requests(3)
    assert [one.tokens for one in written(author(strategy).write(asked))] == [
        one.tokens for one in written(author(None).write(asked))
    ]
    assert strategy.hits.hits == strategy.hits.misses == 0


def test_a_draft_whose_logits_are_not_finite_is_given_up_and_the_answer_is_right():
    broken = network(is_draft=True)
    broken._head[:] = np.nan
    strategy = OutcomeStrategy(InProcessDraft(OutcomeDrafter(KVSessions(broken, CONFIG)), 3))
    asked = requests(3)
    assert [one.tokens for one in written(author(strategy).write(asked))] == [
        one.tokens for one in written(author(None).write(asked))
    ]


def test_a_ranking_that_is_not_known_is_refused():
    with pytest.raises(InvalidInput, match="ranked by noise or probability"):
        drafter("luck")


def _joined(length: int, tokens: list[int] | None = None) -> OutcomeDrafter:
    """A drafter with the first request's stem in slot 0, which may be some tokens further."""
    ahead = drafter()
    asked = author(None).tokenize(requests(1)[0])
    state = asked.grammar.start
    for token in tokens or []:
        state = asked.grammar.advance(state, token)
    assert ahead.join(0, SequenceState(asked, list(tokens or []), state))
    ahead.ask(0, length)
    return ahead


def _worked(ahead: OutcomeDrafter, num_steps: int) -> list[int]:
    """The words of round 1 after so many passes."""
    for _ in range(num_steps):
        ahead.step()
    return ahead.trees[0].unpublished_words(1)


def _other(ahead: OutcomeDrafter, block: list[int], place: int) -> int:
    """What the likeliest branch off the block at `place` says."""
    tree = ahead.trees[0]
    return next(
        branch.token
        for branch in tree.branches
        if branch.at.position - tree.root.position == place
        and branch.token != block[place]
        and branch.num_chosen
    )
