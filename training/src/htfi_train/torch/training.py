"""The training loop of target and draft: budget, log, checkpoints, signals. `htfi_train.trainer` calls `train`."""

import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from htfi.adapters.torch.llama import find_device, load_llama, tensor
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi_train.torch.batches import (
    CLASS_NAMES,
    NUM_CLASSES,
    BatchLoader,
    BatchPosition,
    StorySource,
    TrainingBatch,
)
from htfi_train.torch.checkpoints import (
    TrainingProgress,
    append_log,
    export_pair,
    load_checkpoint,
    open_output,
    rewind_log,
    save_checkpoint,
)
from htfi_train.torch.config import TrainingConfig, learning_rate_share
from htfi_train.torch.pair import (
    AGREE,
    COUNT,
    DRAFT_CE,
    DRAFT_KL,
    NUM_SUMS,
    TARGET_CE,
    TARGET_HIT,
    TargetDraftPair,
)

_SAMPLE_ROWS = 4
_MEASURE_EVERY = 4  # steps
_MIN_LOSS_AVERAGE = 20  # log entries over which a card's losses are averaged


class TrainingResult(msgspec.Struct, frozen=True):
    """How a run ended. `finished` is false when a signal stopped it: the same command continues."""

    finished: bool
    step: int
    tokens: int
    elapsed_s: float
    metrics: dict[str, float]


def train(
    config: TrainingConfig,
    out: Path,
    source: StorySource,
    vocab_size: int,
    report: Callable[[str], None],
    description: str = "",
    start_from: tuple[ModelFolder, ModelFolder] | None = None,
) -> TrainingResult:
    """Train both models on `source` until the budget is used; continue from a checkpoint in `out` if there is one, else
    from the weights of `start_from`, target and draft.

    Leaves mini-target and mini-draft (Hugging Face folders), training.jsonl and checkpoint.pt in `out`;
    SIGTERM and SIGINT end it after the step at hand, with everything saved.
    Raises: InvalidInput, DependencyUnavailable.
    """
    device = find_device(config.device)
    open_output(out)
    pair = TargetDraftPair(config, vocab_size, device)
    state = load_checkpoint(out, pair, vocab_size)
    if state.step:
        rewind_log(out, state)
        report(f"resuming at step {state.step} after {state.elapsed_s / 60:.1f} minutes")
    elif start_from is not None:
        pair.start_from(*map(load_llama, start_from))
    run = _TrainingRun(config, out, source, pair, vocab_size, state, report, description)
    with (
        stop_on_signal() as stop,
        BatchLoader(
            source,
            seed=config.seed,
            workers=config.workers,
            pool=config.pool,
            batch_tokens=config.batch_tokens,
            longest=config.target.max_positions,
            place=BatchPosition(state.pool, state.batch),
        ) as batches,
    ):
        return run.until_done(batches, stop)


class _TrainingRun:
    """One run's clock, sums since the last log line, and files."""

    def __init__(
        self,
        config: TrainingConfig,
        out: Path,
        source: StorySource,
        pair: TargetDraftPair,
        vocab_size: int,
        state: TrainingProgress,
        report: Callable[[str], None],
        description: str,
    ) -> None:
        self._config = config
        self._out = out
        self._source = source
        self._pair = pair
        self._vocab_size = vocab_size
        self._training_progress = state
        self._report = report
        self._description = description
        self._began_s = time.monotonic() - state.elapsed_s
        self._sums = np.zeros((NUM_SUMS, NUM_CLASSES))
        self._recent: list[NDArray[np.float64]] = []
        self._logged = state
        self._saved = state

    def until_done(self, batches: BatchLoader, stop: Event) -> TrainingResult:
        sample: TrainingBatch | None = None
        while self._progress() < 1.0 and not stop.is_set():
            batch, place = next(batches)
            if sample is None:  # the wait for the first pool is not the training's
                self._began_s = time.monotonic() - self._training_progress.elapsed_s
            sample = batch
            measured = self._training_progress.step % _MEASURE_EVERY == 0
            self._sums += self._pair.step(
                batch, learning_rate_share(self._config, self._progress()), measured
            )
            self._training_progress = TrainingProgress(
                step=self._training_progress.step + 1,
                tokens=self._training_progress.tokens + batch.tokens,
                elapsed_s=time.monotonic() - self._began_s,
                pool=place.pool,
                batch=place.batch,
            )
            if self._training_progress.elapsed_s - self._logged.elapsed_s >= self._config.log_every_s:
                self._log()
            if self._training_progress.elapsed_s - self._saved.elapsed_s >= self._config.checkpoint_every_s:
                self._save(sample)
        if self._training_progress.step > self._logged.step:
            self._log()
        if sample is not None:
            self._save(sample)
        state = self._training_progress
        finished = self._progress() >= 1.0
        self._report(
            f"{'done' if finished else 'stopped; run the same command again to resume'}: step {state.step}, "
            f"{state.tokens:,} tokens, {state.elapsed_s / 60:.1f} minutes; models in {self._out}"
        )
        return TrainingResult(finished, state.step, state.tokens, state.elapsed_s, self._averages())

    def _progress(self) -> float:
        if self._config.tokens is not None:
            return self._training_progress.tokens / self._config.tokens
        return self._training_progress.elapsed_s / (60.0 * self._config.minutes)

    def _log(self) -> None:
        metrics = _metrics(self._sums)
        seconds = self._training_progress.elapsed_s - self._logged.elapsed_s
        rate = (self._training_progress.tokens - self._logged.tokens) / max(seconds, 1e-9)
        append_log(
            self._out,
            {
                "step": self._training_progress.step,
                "tokens": self._training_progress.tokens,
                "elapsed_s": round(self._training_progress.elapsed_s, 2),
                "tokens_per_s": round(rate, 1),
                "rate_share": round(learning_rate_share(self._config, self._progress()), 4),
                **{key: round(value, 5) for key, value in metrics.items()},
            },
        )
        self._report(_log_line(self._training_progress, self._progress(), rate, metrics))
        self._recent = [*self._recent[1 - _MIN_LOSS_AVERAGE :], self._sums]
        self._sums = np.zeros((NUM_SUMS, NUM_CLASSES))
        self._logged = self._training_progress

    def _save(self, sample: TrainingBatch) -> None:
        save_checkpoint(self._out, self._pair, self._training_progress, self._vocab_size)
        ids = tensor(sample.ids[:_SAMPLE_ROWS])
        facts = {
            "data": self._description or self._source.function,
            "tokens": self._training_progress.tokens,
            "steps": self._training_progress.step,
            "training_s": round(self._training_progress.elapsed_s, 1),
            "budget_used": round(min(self._progress(), 1.0), 4),
            "device": _device_name(self._pair.device),
            "losses": {key: round(value, 4) for key, value in self._averages().items()},
            "settings": msgspec.to_builtins(self._config),
        }
        export_pair(self._out, self._pair, Path(self._source.tokenizer_file), ids, facts)
        self._saved = self._training_progress

    def _averages(self) -> dict[str, float]:
        return _metrics(np.sum([*self._recent, self._sums], axis=0))


def _metrics(sums: NDArray[np.float64]) -> dict[str, float]:
    """Means over the positions that carry loss, by class where there were any. Losses in nats a token."""
    found: dict[str, float] = {}
    names = {
        TARGET_CE: "target_ce", DRAFT_CE: "draft_ce", DRAFT_KL: "draft_kl", AGREE: "agreement",
        TARGET_HIT: "target_top1",
    }  # fmt: skip
    for row, name in names.items():
        for index, kind in enumerate(CLASS_NAMES):
            if sums[COUNT, index]:
                found[f"{name}_{kind}"] = float(sums[row, index] / sums[COUNT, index])
    return found


def _log_line(state: TrainingProgress, progress: float, rate: float, metrics: dict[str, float]) -> str:
    def shown(name: str) -> str:
        values = [metrics.get(f"{name}_{kind}") for kind in CLASS_NAMES[1:]]
        return " ".join("–" if value is None else f"{value:.3f}" for value in values)

    return (
        f"{min(progress, 1.0):6.1%}  step {state.step}  {state.tokens / 1e6:.2f}M tokens  {rate:,.0f}/s  "
        f"text prices view path: CE {shown('target_ce')}  draft {shown('draft_ce')}  KL {shown('draft_kl')}  "
        f"agreement {shown('agreement')}"
    )


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return "cpu"


@contextmanager
def stop_on_signal() -> Generator[Event]:
    """An event that SIGTERM or SIGINT sets, instead of ending the process in the middle of a step."""
    stop = Event()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
