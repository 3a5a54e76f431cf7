"""What one can know of a model's folder: its facts, and how it does when loaded. `htfi models` shows both."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from htfi import models
from htfi.decoding.config import DecodingConfig
from htfi.decoding.forward_pass import forward_text
from htfi.decoding.ports import Floats, Ids, Network
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import News
from htfi.domain.generation import GenerationRequest, PromptDialect, RequestRefused
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.answer import parse_answer, to_view, view_grammar
from htfi.narrative.ports import TextGenerator
from htfi.narrative.question import Question, build_prompt, shown_items
from htfi.wiring.models.loading import LoadableModel, load_network

_AS_OF_NS = 19_000 * NS_PER_DAY
_NUM_STEPS = 30

# A question that every model is asked, so that answers can be laid side by side. The companies are invented.
_HEADLINES = (
    ("Norvane Energy cuts full-year outlook, cites weaker refining margins", ("NRV",)),
    ("Fed raises its target rate by 25 bp, as expected", ()),
    ("Halcyon Foods names new head of investor relations", ("HLCY",)),
)
STANDARD_QUESTION = Question(
    symbol="NRV",
    as_of_ns=_AS_OF_NS,
    bar_ns=NS_PER_DAY,
    items=tuple(
        News(_AS_OF_NS - hours * 3_600 * 10**9, 0, "check", hours, f"check-{hours}", headline, symbols)
        for hours, (headline, symbols) in enumerate(_HEADLINES, 1)
    ),
    context=(0.3, -0.8, 0.1, 1.2, -0.4, 0.6, -1.1, 0.2),
    name="Norvane Energy",
)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A folder's facts, read without loading it."""

    path: Path
    family: str
    num_parameters: int
    sizes: str
    vocab_size: int
    max_positions: int
    dialect: PromptDialect
    weight_bytes: int
    digest: str
    shipped: bool


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """How a loaded model did. Times are medians; logits are compared with those of full precision."""

    open_s: float
    step_ms: float
    read_ms: float
    logit_error: float
    top1_agreement: float
    num_prompt_tokens: int
    num_written_tokens: int
    view: NewsView


def model_facts(opened: LoadableModel) -> ModelFacts:
    """Raises: InvalidInput when the weights are not whole."""
    folder = opened.folder
    shape = folder.architecture
    return ModelFacts(
        path=folder.path,
        family=shape.family.value,
        num_parameters=sum(math.prod(folder.weights.shape(name)) for name in folder.weights.names()),
        sizes=f"{shape.num_layers} layers of {shape.hidden_size}, {shape.num_heads}/{shape.num_kv_heads} heads",
        vocab_size=shape.vocab_size,
        max_positions=shape.max_positions,
        dialect=Vocabulary(opened.tokenizer).dialect,
        weight_bytes=sum(file.stat().st_size for file in folder.weights.files),
        digest=folder.digest,
        shipped=models.DIGESTS.get(folder.path) == folder.digest,
    )


def read_card(folder: Path) -> dict[str, object]:
    """The model card that training left; empty where there is none."""
    try:
        return msgspec.json.decode((folder / "card.json").read_bytes(), type=dict[str, object])
    except (OSError, msgspec.DecodeError):
        return {}


def check_model(opened: LoadableModel, config: DecodingConfig) -> ModelCheck:
    """Load the model, ask it the standard question, and compare its logits with full precision.

    Raises: InvalidInput, DependencyUnavailable.
    """
    started_s = time.perf_counter()
    generator = opened.plain_generator(config)
    open_s = time.perf_counter() - started_s
    request = _request(generator.dialect)
    started_s = time.perf_counter()
    (writing,) = generator.write([request])
    read_ms = 1e3 * (time.perf_counter() - started_s)
    if isinstance(writing, RequestRefused):
        raise InvalidInput(f"{opened.folder.path}: it cannot answer the standard question: {writing.reason}")
    prompt = generator.vocabulary.encode(request.prompt)
    ids = np.array([[*prompt, *writing.tokens]], np.int64)
    exact = _logits(load_network(opened.folder, "fp32"), ids)
    rounded = _logits(opened.network, ids)
    return ModelCheck(
        open_s=open_s,
        step_ms=_step_ms(opened.network, ids),
        read_ms=read_ms,
        logit_error=float(np.abs(rounded - exact).max()),
        top1_agreement=float((rounded.argmax(-1) == exact.argmax(-1)).mean()),
        num_prompt_tokens=writing.num_prompt_tokens,
        num_written_tokens=len(writing.tokens),
        view=to_view(
            parse_answer(writing.fields, opened.trust), STANDARD_QUESTION, NS_PER_DAY, generator.version
        ),
    )


def ask_standard_question(generator: TextGenerator) -> NewsView:
    """The view of any generator on the standard question. Raises: DependencyUnavailable when it is refused."""
    (answer,) = generator.write([_request(generator.dialect)])
    if isinstance(answer, RequestRefused):
        raise DependencyUnavailable(f"{generator.version} did not answer: {answer.reason}")
    return to_view(parse_answer(answer.fields), STANDARD_QUESTION, NS_PER_DAY, generator.version)


def _request(dialect: PromptDialect) -> GenerationRequest:
    prompt, shared = build_prompt(STANDARD_QUESTION, dialect)
    return GenerationRequest(
        prompt,
        view_grammar(dialect, len(shown_items(STANDARD_QUESTION))),
        deadline_ms=60_000.0,
        shared=shared,
    )


def _logits(network: Network, ids: Ids) -> Floats:
    return forward_text(network, ids).logits[0]


def _step_ms(network: Network, ids: Ids) -> float:
    past = forward_text(network, ids[:, :-1])
    num = ids.shape[1] - 1
    mask = np.zeros((1, 1, num + 1), np.float32)
    times: list[float] = []
    for _ in range(_NUM_STEPS):
        started_s = time.perf_counter()
        network.forward(ids[:, -1:], np.full((1, 1), num, np.int64), mask, past.keys, past.values)
        times.append(1e3 * (time.perf_counter() - started_s))
    return median(times)
