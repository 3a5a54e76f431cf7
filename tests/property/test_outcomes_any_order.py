"""Whatever is settled, and however far the draft had come: its cache tells the truth and answers are those of plain."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.decoding.config import DecodingConfig
from htfi.decoding.forward_pass import forward_text
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategies.outcomes.drafter import FanOut, OutcomeDrafter
from htfi.decoding.strategies.outcomes.strategy import OutcomeStrategy
from htfi.decoding.strategies.outcomes.tree import read_continuation
from htfi.domain.generation import FreeTextField, PlainText
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

FORMS = st.sampled_from([PATH, VIEW, WORDS, (*VIEW, FreeTextField("more", 5, PlainText(".")))])
TINY = network(is_draft=True)


@settings(max_examples=examples(25), deadline=None)
@given(
    form=FORMS,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    length=st.integers(1, 9),
    num_steps=st.integers(0, 14),
    num_requests=st.integers(1, 6),
    max_batch=st.integers(1, 4),
    ranked_by=st.sampled_from(["noise", "probability"]),
    most=st.integers(1, 20),
    first_seed=st.integers(0, 10**6),
)
def test_answers_equal_plain_and_blocks_equal_chain(
    form, temperature, length, num_steps, num_requests, max_batch, ranked_by, most, first_seed
):
    asked = requests(num_requests, form, temperature, first_seed)
    config = DecodingConfig(CONFIG.batch_bytes, CONFIG.cache_bytes, max_batch=max_batch)
    plain = written(author(None, config=config).write(asked))
    chained = written(author(chain(), length, config).write(asked))
    strategy = OutcomeStrategy(InProcessDraft(drafter(ranked_by, FanOut(max_outcomes=most)), num_steps))
    ahead = written(author(strategy, length, config).write(asked))
    assert [one.tokens for one in ahead] == [one.tokens for one in plain]
    assert [one.rounds for one in ahead] == [one.rounds for one in chained]


@settings(max_examples=examples(25), deadline=None)
@given(st.data())
def test_every_node_has_the_logits_of_its_own_text_and_every_cached_block_is_drafted_from_it(data):
    form = data.draw(FORMS)
    asked = author(None).tokenize(requests(1, form, 1.0, data.draw(st.integers(0, 999)))[0])
    stem = SequenceState(asked, list(asked.forced_prefix), asked.start_state)
    ahead = drafter(fan=FanOut(max_outcomes=data.draw(st.integers(1, 20))))
    settled = list(stem.tokens)
    assert ahead.join(0, stem)
    ahead.ask(0, data.draw(st.integers(1, 6)))
    for epoch in range(1, 4):
        for _ in range(data.draw(st.integers(0, 12))):
            ahead.step()
        _check(ahead, [*asked.prompt, *settled])
        words = [*ahead.trees[0].unpublished_words(epoch)] if ahead.trees[0].num_published == 0 else []
        tokens = _outcome(ahead, data)
        if not tokens or ahead.trees[0].root.state == asked.grammar.done:
            break
        cached = read_continuation(words, epoch, tokens)
        hit = ahead.verified(0, tokens)
        settled += tokens
        if words:
            assert hit == bool(cached)
            assert ahead.trees[0].chain() == (cached or [])


def _outcome(ahead: OutcomeDrafter, data: st.DataObject) -> list[int]:
    """Some of the draft's own chain, then any admitted token, with what each forces: as a target settles them."""
    tree = ahead.trees[0]
    form, state = tree.form, tree.root.state
    tokens: list[int] = []
    own = tree.chain()
    for at in range(data.draw(st.integers(0, len(own))) + 1):
        if state == form.done:
            break
        follows = own[at] if own[:at] == tokens[:at] and at < len(own) else None
        admitted = form.steps[state].allowed.ids
        other = int(admitted[data.draw(st.integers(0, len(admitted) - 1))]) if len(admitted) else None
        forced = form.steps[state].forced
        token = forced if forced >= 0 else follows if follows is not None else other
        tokens.append(token)
        state = form.advance(state, token)
    forced_tokens, _ = form.forced(state)
    return tokens + forced_tokens


def _check(ahead: OutcomeDrafter, settled: list[int]) -> None:
    """Against one causal pass over the whole text of each node that was read."""
    tree = ahead.trees[0]
    for node in tree.read:
        branch = []
        at = node
        while at is not None and at.position > tree.root.position:
            branch.append(at.token)
            at = at.parent
        whole = forward_text(TINY, np.array([[*settled, *branch[::-1]]], np.int64))
        np.testing.assert_allclose(node.logits, whole.logits[0, -1], atol=1e-4)
