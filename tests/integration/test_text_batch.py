"""Texts by the shipped pair, side by side: what decides their tokens, and what is noted about them."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from htfi.decoding.automaton import TextGrammar, TokenAutomaton
from htfi.decoding.config import DecodingConfig
from htfi.decoding.sampling import SamplingParams
from htfi.decoding.texts.batch import FinishReason, TextPart
from htfi.decoding.texts.json_grammar import LanguageGrammar
from htfi.decoding.texts.json_schema import any_object
from htfi.decoding.texts.logprobs import TokenLogprob
from htfi.domain.errors import InvalidInput
from htfi.wiring.models.speculation import speculative_generator
from htfi.wiring.service.language_models import LanguageModels


@pytest.fixture(scope="module")
def models() -> LanguageModels:
    """With drafts of four tokens in every round, whatever they save."""
    found = LanguageModels()
    assert found.draft is not None
    config = DecodingConfig(draft_length="fixed", max_draft_length=4)
    found.engine = speculative_generator(found.target, found.draft, config, found.rule)
    return found


def form(models: LanguageModels, num: int) -> TokenAutomaton:
    assert models.end is not None
    return LanguageGrammar(any_object(), models.token_texts, models.end, num)


def written(models: LanguageModels, *asked: dict[str, Any], num: int = 24) -> list[list[TextPart]]:
    """The parts of texts that are written together."""
    parts: list[list[TextPart]] = []
    for one in asked:
        mine: list[TextPart] = []
        parts.append(mine)
        models.batch.add(
            models.text_prompt(one.get("prompt", "The Fed raises rates")),
            one.get("grammar") or TextGrammar(models.engine.vocabulary, models.end, num),
            SamplingParams(one.get("temperature", 1.0), 0, one.get("top_p", 1.0)),
            one.get("seed", 5), mine.append, one.get("stops", ()), one.get("num_logprobs"), one.get("max_draft"),
        )  # fmt: skip
    while models.batch.num_open:
        models.batch.step()
    return parts


def tokens_of(parts: Sequence[TextPart]) -> list[int]:
    return [token for part in parts for token in part.tokens]


def text_of(parts: Sequence[TextPart]) -> str:
    return "".join(part.text for part in parts)


@pytest.mark.parametrize("asked", [{}, {"top_p": 0.5}, {"temperature": 0.0}, {"temperature": 1.7, "seed": 9}])
def test_tokens_are_the_same_with_and_without_a_draft(models: LanguageModels, asked: dict[str, Any]) -> None:
    drafted, plain = written(models, asked, {**asked, "max_draft": 0})
    assert tokens_of(drafted) == tokens_of(plain)
    assert len(tokens_of(plain)) == 24
    assert (plain[-1].counts.num_drafted, plain[-1].counts.num_accepted) == (0, 0)
    assert drafted[-1].counts.num_drafted > 0


def test_tokens_are_the_same_whatever_is_written_beside_them(models: LanguageModels) -> None:
    (alone,) = written(models, {"seed": 3})
    _, beside, _ = written(
        models, {"prompt": "Oil", "seed": 1}, {"seed": 3}, {"prompt": "Gold", "top_p": 0.4}
    )
    assert tokens_of(beside) == tokens_of(alone)


def test_document_is_the_same_with_and_without_a_draft(models: LanguageModels) -> None:
    asked = [
        {"seed": seed, "grammar": form(models, 120), "max_draft": bound}
        for seed in (1, 2)
        for bound in (None, 0)
    ]
    first, first_plain, second, second_plain = map(text_of, written(models, *asked))
    assert (first, second) == (first_plain, second_plain)


def test_any_object_that_ends_is_json_and_a_cut_one_is_said_to_be_cut(models: LanguageModels) -> None:
    found = written(models, *({"seed": seed, "grammar": form(models, 60)} for seed in range(16)))
    whole = [text_of(parts) for parts in found if parts[-1].finish is FinishReason.STOP]
    cut = [parts for parts in found if parts[-1].finish is FinishReason.LENGTH]
    assert len(whole) + len(cut) == 16
    assert whole
    assert all(isinstance(json.loads(text), dict) for text in whole)
    assert {parts[-1].counts.num_written for parts in cut} <= {60}


def test_small_top_p_leaves_the_likeliest(models: LanguageModels) -> None:
    greedy, narrow, wide = written(models, {"temperature": 0.0}, {"top_p": 1e-6}, {})
    assert tokens_of(narrow) == tokens_of(greedy)
    assert tokens_of(wide) != tokens_of(greedy)


def test_stop_string_ends_a_text_and_counts_no_token_after_it(models: LanguageModels) -> None:
    (whole,) = written(models, {})
    text = text_of(whole)
    (cut,) = written(models, {"stops": [text[7:10]]})
    assert text_of(cut) == text[: text.find(text[7:10])]
    assert cut[-1].finish is FinishReason.STOP
    assert cut[-1].counts.num_written == len(tokens_of(cut)) < 24


@pytest.mark.parametrize("max_draft", [None, 0])
def test_logprobs_are_the_networks_own(models: LanguageModels, max_draft: int | None) -> None:
    (parts,) = written(models, {"num_logprobs": 3, "max_draft": max_draft})
    noted = [one for part in parts for one in part.logprobs]
    assert [one.token for one in noted] == tokens_of(parts)
    expected = logprobs_by_one_pass(models, models.text_prompt("The Fed raises rates"), tokens_of(parts))
    assert [one.logprob for one in noted] == pytest.approx([one.logprob for one in expected], abs=2e-3)
    assert [one.top[0][0] for one in noted] == [one.top[0][0] for one in expected]
    assert {len(one.top) for one in noted} == {3}


def logprobs_by_one_pass(
    models: LanguageModels, prompt: Sequence[int], tokens: Sequence[int]
) -> list[TokenLogprob]:
    """By the network over the whole text at once, without sessions, drafts or a rule."""
    network = models.target.network
    ids = np.array([[*prompt, *tokens]], np.int64)
    num, shape = ids.shape[1], network.shape
    mask = np.triu(np.full((num, num), -np.inf, np.float32), 1)[None]
    empty = np.zeros((shape.num_layers, 1, shape.num_kv_heads, 0, shape.head_dim), np.float32)
    logits = (
        network.forward(ids, np.arange(num, dtype=np.int64)[None], mask, empty, empty)
        .logits[0]
        .astype(np.float64)
    )
    allowed = models.engine.vocabulary.text_or(models.end).ids
    found: list[TokenLogprob] = []
    for place, token in enumerate(tokens, len(prompt) - 1):
        scores = logits[place, allowed]
        scores -= math.log(np.exp(scores - scores.max()).sum()) + scores.max()
        best = int(np.argmax(scores))
        top = [(int(allowed[best]), float(scores[best]))]
        found.append(TokenLogprob(token, float(scores[np.searchsorted(allowed, token)]), top))
    return found


def test_cancelled_text_frees_its_place(models: LanguageModels) -> None:
    parts: list[TextPart] = []
    grammar = TextGrammar(models.engine.vocabulary, models.end, 500)
    text = models.batch.add(models.text_prompt("Oil"), grammar, SamplingParams(1.0, 0, 1.0), 1, parts.append)
    models.batch.step()
    models.batch.cancel(text)
    assert not models.batch.holds(text)
    assert models.batch.num_open == 0
    (beside,), (alone,) = written(models, {}), written(models, {})
    assert tokens_of(beside) == tokens_of(alone)


def test_empty_prompt_and_one_beyond_the_context_are_refused(models: LanguageModels) -> None:
    grammar = TextGrammar(models.engine.vocabulary, models.end, 1)
    with pytest.raises(InvalidInput, match="empty prompt"):
        models.batch.add([], grammar, SamplingParams(1.0, 0, 1.0), 1, print)
    with pytest.raises(InvalidInput):
        models.batch.add([5] * 2_000, grammar, SamplingParams(1.0, 0, 1.0), 1, print)
