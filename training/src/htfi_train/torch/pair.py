"""Target and draft as they learn from one batch, with optimisers and what a step costs. The training loop owns one.

The target learns the data; the draft learns the target's distribution (and a little of the data) on the same
batch, so one pass over the stories makes both and drafts get accepted. Distillation: arXiv 1503.02531.

On a CPU a batch is cut into parts, each computed by one thread alone. Threads that share every operation wait
for each other a thousand times a step, and on a machine with other work that cost up to 8 times; so they meet once.
Gradients are added in the order of the parts, so the number of threads changes no bit.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from htfi.adapters.torch.llama import Llama, tensor
from htfi.domain.errors import InvalidInput
from htfi_train.torch.batches import NUM_CLASSES, TrainingBatch
from htfi_train.torch.config import TrainingConfig

# Rows of the sums that a step reports, each by class of token.
COUNT, TARGET_CE, DRAFT_CE, DRAFT_KL, AGREE, TARGET_HIT = range(6)
NUM_SUMS = 6

_NEW_ROW_NOISE = 0.3  # of the deviation of the embeddings that are there
_CHUNK_POSITIONS = 1_024  # their probabilities fit in the processor's cache


class TargetDraftPair:
    """Both networks and their optimiser state on one device."""

    def __init__(self, config: TrainingConfig, vocab_size: int, device: torch.device) -> None:
        self.config = config
        self.device = device
        self.target = Llama(config.target.architecture(vocab_size))
        self.draft = Llama(config.draft.architecture(vocab_size))
        initialise(self.target, config.seed)
        initialise(self.draft, config.seed + 1)
        self.target.to(device)
        self.draft.to(device)
        self.optimisers = make_optimisers(self.target, config.target_rate, config.weight_decay, config.muon)
        self.optimisers += make_optimisers(self.draft, config.draft_rate, config.weight_decay, config.muon)
        self._parameters = [*self.target.parameters(), *self.draft.parameters()]
        on_cpu = device.type == "cpu"
        self._num_parts = config.parts if on_cpu else 1
        num_threads = (config.threads or len(os.sched_getaffinity(0))) if on_cpu else 1
        if on_cpu:
            torch.set_num_threads(1)
        # OpenMP keeps its count by thread
        self._threads = ThreadPoolExecutor(
            num_threads, "htfi-learning", initializer=torch.set_num_threads, initargs=(1,)
        )

    def step(self, batch: TrainingBatch, rate_share: float, measured: bool = True) -> NDArray[np.float64]:
        """Learn from one batch at this share of the peak rate.

        Sums by class of token [NUM_SUMS, NUM_CLASSES]; zeros unless `measured`, as measuring costs a tenth.
        """
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * rate_share
        total = float(batch.weights.sum())
        parts = [
            TrainingBatch(
                batch.ids[i :: self._num_parts],
                batch.weights[i :: self._num_parts],
                batch.classes[i :: self._num_parts],
                0,
            )
            for i in range(min(self._num_parts, len(batch.ids)))
        ]
        sums = torch.zeros(NUM_SUMS, NUM_CLASSES, dtype=torch.float64, device=self.device)
        learn = partial(self._learn, total_weight=total, measured=measured)
        for gradients, counted in self._threads.map(learn, parts):
            sums += counted
            for parameter, gradient in zip(self._parameters, gradients, strict=True):
                if parameter.grad is None:
                    parameter.grad = gradient
                else:
                    parameter.grad += gradient
        for network in (self.target, self.draft):  # apart, so that neither's size bounds the other's step
            nn.utils.clip_grad_norm_(network.parameters(), self.config.clip)
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad()
        return sums.cpu().numpy()

    def _learn(
        self, part: TrainingBatch, total_weight: float, measured: bool
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        """Gradients of both networks' parameters from one part, and its sums [NUM_SUMS, NUM_CLASSES]."""
        ids = tensor(part.ids, self.device)
        rows, steps = np.nonzero(part.weights)
        picked = tensor(rows * ids.shape[1] + steps - 1, self.device)  # one before the predicted
        truth = tensor(part.ids[rows, steps], self.device)
        weights = tensor(part.weights[rows, steps] / np.float32(total_weight), self.device)
        classes = tensor(part.classes[rows, steps].astype(np.int64), self.device)
        with torch.autocast(self.device.type, torch.bfloat16):
            target = self._logits(self.target, ids, picked)
            draft = self._logits(self.draft, ids, picked)
        gradients, sums = _scores(target, draft, truth, weights, classes, self.config.distillation, measured)
        return torch.autograd.grad([target, draft], self._parameters, gradients), sums

    def start_from(self, target: Llama, draft: Llama) -> None:
        """Go on from another pair, of a vocabulary that these begin with. Raises InvalidInput for other sizes.

        A token that is new begins at the mean of the embeddings, with a little noise.
        """
        for network, start in ((self.target, target), (self.draft, draft)):
            state, given = network.state_dict(), start.state_dict()
            num_known = start.sizes.vocab_size
            same = replace(start.sizes, vocab_size=network.sizes.vocab_size) == network.sizes
            if not same or num_known > network.sizes.vocab_size:
                raise InvalidInput(
                    "the models to start from have other sizes, or tokens that the vocabulary lacks"
                )
            generator = torch.Generator().manual_seed(self.config.seed)
            for name, weights in given.items():
                if len(weights) != len(state[name]):
                    num_new = len(state[name]) - num_known
                    noise = torch.randn(num_new, weights.shape[1], generator=generator)
                    fresh = weights.mean(0) + _NEW_ROW_NOISE * weights.std() * noise
                    weights = torch.cat((weights, fresh))
                state[name].copy_(weights)
            network.load_state_dict(state)

    def state(self) -> dict[str, Any]:
        return {
            "target": self.target.state_dict(),
            "draft": self.draft.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
        }

    def load(self, state: dict[str, Any]) -> None:
        self.target.load_state_dict(state["target"])
        self.draft.load_state_dict(state["draft"])
        for optimiser, saved in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)

    @staticmethod
    def _logits(network: Llama, ids: Tensor, picked: Tensor) -> Tensor:
        """Logits [N, V] of the positions that carry loss; the others never meet the vocabulary."""
        hidden = network.hidden(ids).flatten(0, 1).index_select(0, picked)  # [N, hidden]
        return functional.linear(hidden, network.head)


def make_optimisers(
    network: Llama, rate: float, weight_decay: float, muon: bool
) -> list[torch.optim.Optimizer]:
    """Muon (arXiv 2502.16982, whose scale lets it share AdamW's rate) for the layers' matrices, AdamW for the rest."""
    embeddings: list[nn.Parameter] = []
    matrices: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []
    for name, parameter in network.named_parameters():
        inside = ".layers." in name and muon
        (vectors if parameter.ndim != 2 else matrices if inside else embeddings).append(parameter)
    groups: list[dict[str, Any]] = [
        {"params": embeddings, "peak": rate, "weight_decay": weight_decay},
        {"params": vectors, "peak": rate, "weight_decay": 0.0},
    ]
    found: list[torch.optim.Optimizer] = [torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), fused=True)]
    if matrices:
        group = {"params": matrices, "peak": rate}
        found.append(
            torch.optim.Muon([group], lr=rate, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
        )
    return found


@torch.no_grad()
def _scores(
    target: Tensor,
    draft: Tensor,
    truth: Tensor,
    weights: Tensor,
    classes: Tensor,
    distillation: float,
    measured: bool,
) -> tuple[list[Tensor], Tensor]:
    """Gradients of the losses at the logits [N, V], and sums by class [NUM_SUMS, NUM_CLASSES].

    With p and q the target's and the draft's probabilities, y the truth: of the target's cross-entropy p - y; of
    the draft's a KL(p, q) + (1 - a) CE(y, q): q - a p - (1 - a) y. Written out, autograd would walk [N, V] thrice.
    """
    gradients = [torch.empty_like(target), torch.empty_like(draft)]
    sums = torch.zeros(NUM_SUMS, NUM_CLASSES, dtype=torch.float64, device=target.device)
    for begin in range(0, len(truth), _CHUNK_POSITIONS):
        part = slice(begin, begin + _CHUNK_POSITIONS)
        y, weight = truth[part, None], weights[part, None]
        log_p, log_q = target[part].float().log_softmax(-1), draft[part].float().log_softmax(-1)
        p, q = log_p.exp(), log_q.exp()
        if measured:
            sums.index_add_(1, classes[part], _position_sums(log_p, log_q, p, y).double())
        scaled = weight.expand_as(y)
        gradients[1][part] = q.sub_(p, alpha=distillation).mul_(weight)
        gradients[1][part].scatter_add_(1, y, ((distillation - 1) * scaled).to(draft.dtype))
        gradients[0][part] = p.mul_(weight)
        gradients[0][part].scatter_add_(1, y, -scaled.to(target.dtype))
    return gradients, sums


def _position_sums(log_p: Tensor, log_q: Tensor, p: Tensor, truth: Tensor) -> Tensor:
    """What is summed, for each position [NUM_SUMS, N]."""
    best = log_p.argmax(-1)
    return torch.stack(
        (
            torch.ones_like(log_p[:, 0]),
            -log_p.gather(1, truth)[:, 0],
            -log_q.gather(1, truth)[:, 0],
            (p * (log_p - log_q)).sum(-1),
            (best == log_q.argmax(-1)).float(),
            (best == truth[:, 0]).float(),
        )
    )


def initialise(network: Llama, seed: int) -> None:
    """Normal(0, 0.02) matrices, those that write into the residual stream smaller by its depth (GPT-2)."""
    generator = torch.Generator().manual_seed(seed)
    residual = 0.02 / (2 * network.sizes.num_layers) ** 0.5
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.ndim == 2:
                small = name.endswith(("o_proj.weight", "down_proj.weight"))
                parameter.normal_(0.0, residual if small else 0.02, generator=generator)
            elif name.endswith(".bias"):
                parameter.zero_()
