"""Stories from background processes, pooled and cut into batches of like length. The trainer asks; needs no torch.

Everything follows from the seed, the number of workers and the pool's size: which story comes from whom, which
batch it lands in, and so where an interrupted run continues.
"""

import multiprocessing
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput

NUM_CLASSES = 5  # padding, text, prices, view, path
CLASS_NAMES = ("padding", "text", "prices", "view", "path")

Story = tuple[list[int], list[float], list[int]]  # ids, weights, classes
Stories = Callable[..., Iterator[Story]]

_CHUNK_STORIES = 32  # stories sent at once
_ROUND_TO = 16  # steps of a row: whole blocks of the processor's bfloat16 products
_BATCHES_AHEAD = 64
_SEED_STRIDE = 1_000_003  # between the seeds of two workers


class TrainingBatch(NamedTuple):
    """Stories of like length, padded on the right.

    ids int64 [B, T]; weights float32 [B, T], how much predicting that token from those before counts; classes
    uint8 [B, T], see CLASS_NAMES. `tokens` counts those that are no padding.
    """

    ids: NDArray[np.int64]
    weights: NDArray[np.float32]
    classes: NDArray[np.uint8]
    tokens: int


class StorySource(NamedTuple):
    """Where stories come from: 'package.module:function', called with seed, first story's number, tokenizer file, and
    the folder of labelled lines where there is one."""

    function: str
    tokenizer_file: str
    lines_folder: str = ""


class BatchPosition(msgspec.Struct, frozen=True):
    """How many pools were used up, and how many batches of the next."""

    pool: int = 0
    batch: int = 0


def load_function(function: str) -> Stories:
    """The function that a path 'package.module:function' names. Raises: InvalidInput."""
    module, _, name = function.partition(":")
    try:
        return cast(Stories, getattr(import_module(module), name))
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInput(
            f"training source {function!r} cannot be found ({error}): name it package.module:function"
        ) from error


def make_batches(
    stories: list[Story], batch_tokens: int, longest: int, seed: tuple[int, ...]
) -> list[TrainingBatch]:
    """One pool as batches of about `batch_tokens` tokens with padding, in random order. Stories end at `longest`."""
    order = sorted(range(len(stories)), key=lambda index: (len(stories[index][0]), index))
    groups: list[list[Story]] = []
    group: list[Story] = []
    for index in order:
        width = _padded(min(len(stories[index][0]), longest), longest)
        if group and (len(group) + 1) * width > batch_tokens:
            groups.append(group)
            group = []
        group.append(stories[index])
    groups.append(group)
    draw = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    return [_batch(groups[int(index)], longest) for index in draw.permutation(np.arange(len(groups)))]


def _padded(length: int, longest: int) -> int:
    return min(-(-length // _ROUND_TO) * _ROUND_TO, longest)


def _batch(group: list[Story], longest: int) -> TrainingBatch:
    width = _padded(max(min(len(ids), longest) for ids, _, _ in group), longest)
    ids = np.zeros((len(group), width), np.int64)
    weights = np.zeros((len(group), width), np.float32)
    classes = np.zeros((len(group), width), np.uint8)
    for row, story in enumerate(group):
        length = min(len(story[0]), width)
        ids[row, :length], weights[row, :length], classes[row, :length] = (part[:length] for part in story)
    weights[:, 0] = 0.0  # nothing comes before it
    return TrainingBatch(ids, weights, classes, int(np.count_nonzero(classes)))


class BatchLoader:
    """An endless iterator over batches from `place` on; close it (or use `with`) to end the worker processes.

    Raises, on iteration: what the source raised, if it is ours; DependencyUnavailable when a worker ended.
    """

    def __init__(
        self,
        source: StorySource,
        *,
        seed: int,
        workers: int,
        pool: int,
        batch_tokens: int,
        longest: int,
        place: BatchPosition = BatchPosition(),  # noqa: B008 (frozen)
    ) -> None:
        load_function(source.function)  # a wrong name is reported before a process starts
        self._cut = (batch_tokens, longest)
        self._seed = seed
        self._place = place
        per_worker = -(-pool // workers // _CHUNK_STORIES) * _CHUNK_STORIES
        self._chunks_per_worker = per_worker // _CHUNK_STORIES
        self._ready: queue.Queue[tuple[TrainingBatch, BatchPosition] | HtfiError] = queue.Queue(
            _BATCHES_AHEAD
        )
        self._closed = threading.Event()
        spawning = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        for worker in range(workers):
            receiving, sending = spawning.Pipe(duplex=False)
            process = spawning.Process(
                target=_worker,
                args=(sending, source, seed + worker * _SEED_STRIDE, place.pool * per_worker),
                daemon=True,
                name=f"htfi-stories-{worker}",
            )
            process.start()
            sending.close()  # so that the pipe ends with its worker
            self._pipes.append(receiving)
            self._processes.append(process)
        self._thread = threading.Thread(target=self._produce, daemon=True, name="htfi-batches")
        self._thread.start()

    def __iter__(self) -> Iterator[tuple[TrainingBatch, BatchPosition]]:
        return self

    def __next__(self) -> tuple[TrainingBatch, BatchPosition]:
        """The next batch, and the place from which to continue after it."""
        found = self._ready.get()
        if isinstance(found, HtfiError):
            raise found
        return found

    def __enter__(self) -> "BatchLoader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes."""
        self._closed.set()
        for process in self._processes:
            process.terminate()
            process.join()
        with suppress(queue.Empty):
            while True:
                self._ready.get_nowait()
        self._thread.join()
        for pipe in self._pipes:
            pipe.close()

    def _produce(self) -> None:
        try:
            pool, first = self._place.pool, self._place.batch
            while True:
                batches = make_batches(self._collect(), *self._cut, (self._seed, pool))
                for index in range(first, len(batches)):
                    last = index + 1 == len(batches)
                    after = BatchPosition(pool + 1, 0) if last else BatchPosition(pool, index + 1)
                    if not self._put((batches[index], after)):
                        return
                pool, first = pool + 1, 0
        except HtfiError as error:
            self._put(error)

    def _put(self, item: tuple[TrainingBatch, BatchPosition] | HtfiError) -> bool:
        while not self._closed.is_set():
            with suppress(queue.Full):
                self._ready.put(item, timeout=0.2)
                return True
        return False

    def _collect(self) -> list[Story]:
        stories: list[Story] = []
        for _ in range(self._chunks_per_worker):
            for pipe in self._pipes:
                try:
                    message: object = pipe.recv()
                except (EOFError, OSError) as error:
                    raise DependencyUnavailable(
                        "a process that makes training stories ended early: see above for why, then run the "
                        "same command again to continue"
                    ) from error
                if isinstance(message, HtfiError):
                    raise message
                stories += cast("list[Story]", message)
        return stories


def _worker(pipe: Connection, source: StorySource, seed: int, start: int) -> None:
    """A worker process: stories in chunks, until the pipe breaks because the trainer ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the trainer ends us
    with suppress(BrokenPipeError, ConnectionResetError):
        try:
            folders = (source.lines_folder,) if source.lines_folder else ()
            stories = load_function(source.function)(seed, start, source.tokenizer_file, *folders)
            while chunk := list(islice(stories, _CHUNK_STORIES)):
                pipe.send(chunk)
            pipe.send(InvalidInput(f"training source {source.function!r} ended: it must be endless"))
        except HtfiError as error:
            pipe.send(error)
