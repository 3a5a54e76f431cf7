"""Starts the draft model in a process of its own, and is that process (`python -m htfi.wiring.models.draft_process`).

The strategy 'outcomes' is built with `open_draft_process`. The child opens the draft's folder itself.
"""

import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from htfi.adapters.drafting.channel import FAILED, READY, SharedOutcomes
from htfi.adapters.drafting.process import DraftProcess, DraftTimeouts
from htfi.adapters.drafting.worker import DraftWorker
from htfi.decoding.config import DecodingConfig
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.outcomes.drafter import OutcomeDrafter
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import HtfiError
from htfi.wiring.cores import usable_cores
from htfi.wiring.models.loading import LoadableModel, open_model


class _ProcessConfig(msgspec.Struct, frozen=True):
    """What the child is started with. `core` is the one that it keeps to, −1 where the system decides."""

    folder: str
    precision: str
    engine: str
    batch_bytes: int
    cache_bytes: int
    cache_tokens: int
    block_tokens: int
    max_batch: int
    ranked_by: str
    core: int


def open_draft_process(
    draft: LoadableModel,
    config: DecodingConfig,
    report: Callable[[str], None],
    patience: DraftTimeouts | None = None,
    ranked_by: str = "noise",
) -> DraftProcess:
    """The draft of this folder in a process of its own, on another core than ours where there is one."""
    process = _ProcessConfig(
        str(draft.folder.path),
        draft.precision,
        draft.engine,
        config.batch_bytes,
        config.cache_bytes,
        config.cache_tokens,
        config.block_tokens,
        config.max_batch,
        ranked_by,
        core_for_draft(usable_cores(), os.cpu_count() or 1),
    )
    command = [sys.executable, "-m", __name__, msgspec.json.encode(process).decode()]
    return DraftProcess(command, report, patience)


def has_core_for_draft() -> bool:
    """Whether a draft could run beside us: on one core it would only take turns with the target."""
    return core_for_draft(usable_cores(), os.cpu_count() or 1) >= 0


def core_for_draft(ours: list[int], num_cores: int) -> int:
    """The last core but one's own: of those that this process may use, or where it keeps to one, of all."""
    if len(ours) > 1:
        return ours[-1]
    others = [core for core in range(num_cores) if core not in ours]
    return others[-1] if others else -1


def main() -> None:
    process, channel_number, board_number = sys.argv[1:]
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # a person interrupts the main process; this one ends when its channel does
    channel = socket.socket(fileno=int(channel_number))
    try:
        loop = _open_loop(
            msgspec.json.decode(process, type=_ProcessConfig), channel, SharedOutcomes(int(board_number))
        )
        channel.sendall(READY)
        loop.run()
    except (HtfiError, OSError, MemoryError) as error:
        channel.sendall(FAILED + f"failed: {error}".encode())


def _open_loop(process: _ProcessConfig, channel: socket.socket, board: SharedOutcomes) -> DraftWorker:
    if process.core >= 0 and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):  # a container may not allow it: then the system decides
            os.sched_setaffinity(0, {process.core})
    opened = open_model(Path(process.folder), process.precision, process.engine)
    config = DecodingConfig(
        process.batch_bytes,
        process.cache_bytes,
        process.block_tokens,
        process.max_batch,
        cache_tokens=process.cache_tokens,
    )
    drafter = OutcomeDrafter(KVSessions(opened.draft_network, config), process.ranked_by)
    loop = DraftWorker(channel, board, drafter, Vocabulary(opened.tokenizer))
    gc.collect()
    gc.freeze()  # what was loaded stays: later collections need not look at it
    return loop


if __name__ == "__main__":
    main()
