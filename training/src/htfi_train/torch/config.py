"""The configuration of a training or distilling run: sizes, learning, budget. Needs no torch."""

from typing import Protocol

import msgspec

from htfi.decoding.checkpoint.folder import Architecture, ModelFamily
from htfi.decoding.checkpoint.rope import Rope
from htfi.domain.errors import InvalidInput


class LlamaSizes(msgspec.Struct, frozen=True):
    """One Llama model's sizes, all but its vocabulary's. Embeddings are tied."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    max_positions: int = 1024

    def __post_init__(self) -> None:
        if min(msgspec.structs.astuple(self)) < 1 or self.heads % self.kv_heads or self.head_dim % 2:
            raise InvalidInput(
                f"model sizes {self} do not fit: all positive, heads a multiple of kv_heads, head_dim even"
            )

    def architecture(self, vocab_size: int) -> Architecture:
        return Architecture(
            family=ModelFamily.LLAMA,
            hidden_size=self.hidden,
            num_layers=self.layers,
            num_heads=self.heads,
            num_kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            intermediate_size=self.intermediate,
            vocab_size=vocab_size,
            max_positions=self.max_positions,
            norm_eps=1e-5,
            activation="silu",
            tie_embeddings=True,
            rope=Rope(),
        )


TARGET_SIZES = LlamaSizes(hidden=256, layers=5, heads=8, kv_heads=4, head_dim=32, intermediate=704)
DRAFT_SIZES = LlamaSizes(hidden=128, layers=3, heads=4, kv_heads=2, head_dim=32, intermediate=352)


class TrainingConfig(msgspec.Struct, frozen=True):
    """Target and draft in one run.

    The budget is `tokens` (reproduces exactly) or else `minutes` of training, checkpoints and all; the learning
    rate follows whichever it is. `distillation` is the draft's share of learning from the target's
    distribution, the rest is from the data.
    """

    target: LlamaSizes = TARGET_SIZES
    draft: LlamaSizes = DRAFT_SIZES
    seed: int = 0
    minutes: float = 60.0
    tokens: int | None = None
    batch_tokens: int = 8_192
    target_rate: float = 2e-3
    draft_rate: float = 3e-3
    distillation: float = 0.7
    muon: bool = True  # for the layers' matrices, instead of AdamW
    weight_decay: float = 0.1
    clip: float = 1.0
    warmup: float = 0.02  # of the budget
    decay: float = 0.6  # of the budget, at its end
    floor: float = 0.03  # of the peak rate, at the end of the budget
    checkpoint_every_s: float = 180.0
    log_every_s: float = 15.0
    workers: int = 1
    pool: int = 2_048  # stories shuffled and sorted by length together
    device: str = "auto"
    threads: int | None = None  # on a CPU; as many as there are cores
    parts: int = 4  # of a batch, on a CPU

    def __post_init__(self) -> None:
        if self.tokens is None and not self.minutes > 0:
            raise InvalidInput(f"training for {self.minutes} minutes is not possible: give more than 0")
        if self.tokens is not None and self.tokens < 1:
            raise InvalidInput(f"training on {self.tokens} tokens is not possible: give more than 0")
        if not (0 <= self.distillation <= 1 and self.warmup >= 0 and 0 < self.decay <= 1 - self.warmup):
            raise InvalidInput(
                "distillation, warm-up and decay are shares of 1, and the last two fit in it together"
            )
        if self.batch_tokens < 1 or self.pool < 1 or self.workers < 1 or self.parts < 1:
            raise InvalidInput("batch tokens, pool, workers and parts are counts from 1 up")
        if self.target.max_positions != self.draft.max_positions:
            raise InvalidInput("target and draft read the same positions: give both the same max_positions")


class DistilConfig(msgspec.Struct, frozen=True):
    """A draft that is taught further.

    The budget is `tokens` (reproduces exactly) or else `minutes` of learning. `rehearsal` is the share of examples
    from simulated stories, against forgetting.
    """

    seed: int = 0
    minutes: float = 10.0
    tokens: int | None = None
    batch_tokens: int = 4_096
    rate: float = 3e-4  # a tenth of training's: more undoes what the draft knew before it learns again
    rehearsal: float = 0.3
    muon: bool = True
    weight_decay: float = 0.01
    clip: float = 1.0
    warmup: float = 0.05  # of the budget
    decay: float = 0.8  # of the budget, at its end
    floor: float = 0.02  # of the peak rate, at the end of the budget
    pool: int = 512  # examples shuffled and sorted by length together
    bfloat16: bool = True
    device: str = "cpu"  # the service beside it may be using the GPU
    threads: int = 1
    log_every_s: float = 10.0

    def __post_init__(self) -> None:
        if self.tokens is None and not self.minutes > 0:
            raise InvalidInput(f"distilling for {self.minutes} minutes is not possible: give more than 0")
        if not (0 <= self.rehearsal < 1 and self.warmup >= 0 and 0 < self.decay <= 1 - self.warmup):
            raise InvalidInput(
                "rehearsal, warm-up and decay are shares of 1, and the last two fit in it together"
            )
        if (
            min(self.batch_tokens, self.pool, self.threads, 1 if self.tokens is None else self.tokens) < 1
            or not self.rate > 0
        ):
            raise InvalidInput(
                "tokens, batch tokens, pool and threads are counts from 1 up, the rate above 0"
            )


class RateSchedule(Protocol):
    """How the learning rate goes with the budget, in shares of it."""

    @property
    def warmup(self) -> float: ...
    @property
    def decay(self) -> float: ...
    @property
    def floor(self) -> float: ...


def learning_rate_share(config: RateSchedule, progress: float) -> float:
    """The share of the peak learning rate at `progress` (0–1) of the budget: up, level, and down in a line."""
    if progress < config.warmup:
        return (progress + 1e-4) / (config.warmup + 1e-4)
    left = (1.0 - min(progress, 1.0)) / config.decay
    return config.floor + (1.0 - config.floor) * min(left, 1.0)
