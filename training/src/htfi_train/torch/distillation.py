"""Teaches a draft what a target would say, place by place, from the examples that `htfi_train.distillation` makes.

At every open place the draft's distribution over what was admitted is drawn towards the target's, at the temperature
that was asked: gradient q - p of KL(p, q), as in training (arXiv 1503.02531), on what the target itself wrote, since
that is where the draft will be asked (arXiv 2310.08461).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import NamedTuple

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from htfi.adapters.torch.llama import Llama, find_device, load_llama, tensor
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi_train.torch.checkpoints import write_model_folder
from htfi_train.torch.config import DistilConfig, learning_rate_share
from htfi_train.torch.examples import (
    KIND_NAMES,
    AdmittedTokenSets,
    DistillationExample,
    ExampleBatch,
    example_batches,
)
from htfi_train.torch.pair import make_optimisers
from htfi_train.torch.training import stop_on_signal

_CHUNK_POSITIONS = 512  # their probabilities fit in the processor's cache
_MASKED_LOGIT = -1e9  # to a logit that the form does not admit
_SAMPLE_ROWS = 4


class DraftTrainingResult(msgspec.Struct, frozen=True):
    """How the learning ended. `finished` is false when a signal stopped it."""

    finished: bool
    steps: int
    tokens: int
    elapsed_s: float
    divergence: dict[str, float]  # KL in nats a place by kind, over the last tenth of the run


class DistillationData(NamedTuple):
    """What to learn: from the buffer, endless rehearsal, and the sets that both number."""

    examples: Sequence[DistillationExample]
    rehearsal: Iterator[DistillationExample]
    sets: AdmittedTokenSets


def distil(
    config: DistilConfig,
    target: ModelFolder,
    draft: ModelFolder,
    data: DistillationData,
    out: Path,
    card: Mapping[str, object],
    report: Callable[[str], None],
    num_tokens_before: int = 0,
) -> DraftTrainingResult:
    """Teach the draft until the budget is used, and write it as a model folder `out`, unless a signal stopped it.

    On a CPU the same data, seed and `tokens` give the same bits. Raises: InvalidInput, DependencyUnavailable.
    """
    device = find_device(config.device)
    torch.set_num_threads(config.threads)
    trainer = _DistillationTrainer(config, load_llama(target), load_llama(draft), data.sets, device)
    source = example_batches(
        data.examples,
        data.rehearsal,
        share=config.rehearsal,
        pool=config.pool,
        batch_tokens=config.batch_tokens,
        seed=config.seed,
    )
    with stop_on_signal() as stop:
        taught, sample = _run(config, trainer, source, stop, report)
    if taught.finished:
        facts = {
            **card,
            "tokens": num_tokens_before + taught.tokens,
            "distillation": {**msgspec.to_builtins(taught), "settings": msgspec.to_builtins(config)},
        }
        write_model_folder(out, trainer.draft, draft.tokenizer_file, sample, facts)
    return taught


def _run(
    config: DistilConfig,
    trainer: "_DistillationTrainer",
    source: Iterator[ExampleBatch],
    stop: Event,
    report: Callable[[str], None],
) -> tuple[DraftTrainingResult, Tensor]:
    began_s = logged_s = time.monotonic()
    steps = tokens = logged_tokens = 0
    progress = 0.0
    recent = np.zeros((2, len(KIND_NAMES)))
    last = np.zeros((2, len(KIND_NAMES)))
    sample = torch.zeros((1, 1), dtype=torch.int64)
    while progress < 1.0 and not stop.is_set():
        batch = next(source)
        sums = trainer.step(batch, learning_rate_share(config, progress))
        steps, tokens = steps + 1, tokens + batch.tokens
        sample = tensor(batch.ids[:_SAMPLE_ROWS])
        recent += sums
        last = last + sums if progress >= 0.9 else sums
        now_s = time.monotonic()
        progress = (
            tokens / config.tokens
            if config.tokens is not None
            else (now_s - began_s) / (60.0 * config.minutes)
        )
        if now_s - logged_s >= config.log_every_s:
            rate = (tokens - logged_tokens) / (now_s - logged_s)
            shown = "  ".join(f"{name} {value:.4f}" for name, value in _means(recent).items())
            report(
                f"{min(progress, 1.0):6.1%}  step {steps}  {tokens / 1e6:.2f}M tokens  {rate:,.0f}/s  KL {shown}"
            )
            logged_s, logged_tokens, recent = now_s, tokens, np.zeros_like(recent)
    return DraftTrainingResult(
        progress >= 1.0, steps, tokens, time.monotonic() - began_s, _means(last)
    ), sample


def _means(sums: NDArray[np.float64]) -> dict[str, float]:
    return {
        name: round(float(total / num), 5)
        for name, num, total in zip(KIND_NAMES, sums[0], sums[1], strict=True)
        if num
    }


class _DistillationTrainer:
    """Target and draft on one device, with the draft's optimisers."""

    def __init__(
        self, config: DistilConfig, target: Llama, draft: Llama, sets: AdmittedTokenSets, device: torch.device
    ) -> None:
        self.draft = draft.to(device)
        self._target = target.requires_grad_(False).to(device)
        self._config = config
        self._device = device
        self._sets = sets
        self._masks = torch.zeros((0, 0))
        self._optimisers = make_optimisers(self.draft, config.rate, config.weight_decay, config.muon)
        self._mean_weight = 0.0

    def step(self, batch: ExampleBatch, rate_share: float) -> NDArray[np.float64]:
        """Learn from one batch; number of places and sum of their KL by kind, [2, kinds]."""
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * rate_share
        total = float(batch.weights.sum())
        # a batch of many places must not count as much as one of few
        self._mean_weight = 0.95 * self._mean_weight + 0.05 * total if self._mean_weight else total
        ids, picked = tensor(batch.ids, self._device), tensor(batch.picked, self._device)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._config.bfloat16):
            with torch.no_grad():
                wanted = _logits(self._target, ids, picked)
            said = _logits(self.draft, ids, picked)
        gradient, divergence = _scores(
            wanted,
            said,
            self._mask_of(batch.admitted),
            tensor(batch.admitted, self._device),
            tensor(batch.temperatures, self._device),
            tensor(batch.weights / np.float32(self._mean_weight), self._device),
        )
        torch.autograd.backward([said], [gradient])
        nn.utils.clip_grad_norm_(self.draft.parameters(), self._config.clip)
        for optimiser in self._optimisers:
            optimiser.step()
            optimiser.zero_grad()
        num_kinds = len(KIND_NAMES)
        sums = np.zeros((2, num_kinds))
        sums[0] = np.bincount(batch.kinds, minlength=num_kinds)
        sums[1] = np.bincount(batch.kinds, divergence.cpu().numpy(), num_kinds)
        return sums

    def _mask_of(self, admitted: NDArray[np.int64]) -> Tensor:
        """What is added to the logits so that only what a set admits counts, [sets, V]; rehearsal may bring more."""
        if admitted.max(initial=0) >= len(self._masks):
            self._masks = torch.where(tensor(self._sets.mask(), self._device), 0.0, _MASKED_LOGIT)
        return self._masks


def _logits(network: Llama, ids: Tensor, picked: Tensor) -> Tensor:
    return functional.linear(network.hidden(ids).flatten(0, 1).index_select(0, picked), network.head)


@torch.no_grad()
def _scores(
    wanted: Tensor, said: Tensor, hide: Tensor, admitted: Tensor, temperatures: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """The weighted KL's gradient at the draft's logits [N, V], and each place's KL [N] unweighted.

    Rows tempered by T: the gradient of KL(p, q) is (q - p) / T. Temperature 0 is taught as 1.
    """
    gradient = torch.empty_like(said)
    divergence = torch.empty(len(said), device=said.device)
    for begin in range(0, len(said), _CHUNK_POSITIONS):
        part = slice(begin, begin + _CHUNK_POSITIONS)
        t = torch.where(temperatures[part] > 0, temperatures[part], 1.0)[:, None]
        hidden = hide.index_select(0, admitted[part])
        log_p = ((wanted[part].float() + hidden) / t).log_softmax(-1)
        log_q = ((said[part].float() + hidden) / t).log_softmax(-1)
        p, q = log_p.exp(), log_q.exp()
        divergence[part] = (p * (log_p - log_q)).sum(-1)
        gradient[part] = q.sub_(p).mul_(weights[part, None] / t)
    return gradient, divergence
