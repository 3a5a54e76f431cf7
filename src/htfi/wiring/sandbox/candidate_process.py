"""The program inside the sandbox: opens a candidate, locks itself, then answers events with forecasts.

It is started by `wiring.sandbox.running` and by nobody else. What is not trusted, a candidate's code, is run after the
lock. Model folders are read by this project's own code; they are opened, and asked once, before it.
"""

import os
import struct
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from htfi.adapters.onnx.session import default_cache_folder
from htfi.adapters.sandbox.locking import lock_process
from htfi.domain.decision import Rung
from htfi.domain.errors import HtfiError, InvalidInput
from htfi.domain.events import Bar, FeedItem, TimePassed
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.ports import Expert
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.recorder import Watcher
from htfi.pipeline.sandbox.messages import (
    Answers,
    BeginCandidate,
    Failure,
    LinkAnswers,
    OpenCandidate,
    Ready,
    RunLink,
    SeriesAnswer,
    TakeEvents,
    decode_request,
    encode,
)
from htfi.wiring.encoder import open_encoder
from htfi.wiring.in_memory_run import NullSink
from htfi.wiring.loop import build_loop
from htfi.wiring.models.readers import open_readers
from htfi.wiring.pushed import PushedFeed
from htfi.wiring.sandbox.simulated_link import open_simulated_pair
from htfi.wiring.settings import Settings, override

_LENGTH = struct.Struct(">I")
_EXPERT_METHODS = ("grow", "update", "learn", "quantiles")
_FILE_NAME = "candidate.py"


def serve() -> None:
    """Answer frames from standard input until it ends; what is printed goes to standard error."""
    control = int(os.environ.pop("CONTROL"))
    locks_files = os.environ.pop("LOCKS_FILES", "")
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    os.close(0)
    try:
        first = decode_request(_read(requests))
        assert isinstance(first, OpenCandidate), "the first frame opens"
        opened = (_OpenedPair if first.over_link else _Opened)(first, control, locks_files)
    except HtfiError as error:
        _write(replies, Failure(str(error), at_opening=True))
        return
    except MemoryError:
        _write(replies, Failure("it needs more memory than it may use", at_opening=True))
        return
    except Exception:  # noqa: BLE001 - whatever a candidate raises is an answer
        _write(replies, Failure(_last_line(), at_opening=True))
        return
    _write(replies, Ready(opened.locks))
    try:
        assert isinstance(decode_request(_read(requests)), BeginCandidate), "it is watched before it begins"
        opened.begin()
        _write(replies, Ready(opened.locks))
        while frame := _read(requests):
            request = decode_request(frame)
            assert isinstance(request, TakeEvents | RunLink), "it is open"
            _write(replies, opened.answer(request))
    except HtfiError as error:
        _write(replies, Failure(str(error)))
    except MemoryError:
        _write(replies, Failure("it used more memory than it may"))
    except Exception:  # noqa: BLE001 - whatever a candidate raises is an answer
        _write(replies, Failure(_last_line()))


class _OpenedPair:
    """The candidate's pair of models, for readings over a simulated link."""

    def __init__(self, asked: OpenCandidate, control: int, locks_files: str) -> None:
        self._pair = open_simulated_pair(_settings(asked))
        for model in (self._pair.target, self._pair.draft):  # loaded before the lock, threads included
            _ask(ModelReader(model.plain_generator(self._pair.settings.decoding)))
        _ask(ModelReader(self._pair.draft.drafting_generator(self._pair.settings.decoding)))
        self.locks = _lock(asked, control, locks_files)

    def begin(self) -> None:
        """Models are data: there is no code of the candidate's to run."""

    def answer(self, request: TakeEvents | RunLink) -> LinkAnswers:
        assert isinstance(request, RunLink), "it is open for a link"
        return LinkAnswers(self._pair.run(request.trial))


class _Opened:
    """The loop with the candidate in it."""

    def __init__(self, asked: OpenCandidate, control: int, locks_files: str) -> None:
        self._asked = asked
        self._settings = _settings(asked)
        self._readers: dict[Rung, NewsReader] | None = None
        if asked.reads_news:
            settings = self._settings
            self._readers = open_readers(settings.models, settings.narrative, settings.decoding)
        _warm_up(self._settings, self._readers)
        self.locks = _lock(asked, control, locks_files)

    def begin(self) -> None:
        """Run the candidate's own code for the first time and build the loop."""
        expert = open_expert(self._asked.expert, self._settings.forecasting) if self._asked.expert else None
        self._name = expert.name if expert is not None else ""
        self._newest: dict[str, DecidedSeries] = {}
        self._loop = _build(
            self._settings, self._readers, self._record, [expert] if expert is not None else []
        )
        self._loop.begin()

    def answer(self, request: TakeEvents | RunLink) -> Answers:
        assert isinstance(request, TakeEvents), "it is open for events"
        self._newest.clear()
        for event in request.events:
            self._loop.step(event)
        return Answers([self._answer_of(series) for series in request.series])

    def _answer_of(self, series: str) -> SeriesAnswer:
        own: list[list[float]] = []
        forecaster = self._loop.components.forecaster
        if self._name and series in forecaster.series:
            batch = forecaster.forecast([series])
            alone = batch.experts[0, batch.names.index(self._name)]
            own = np.asarray(alone, np.float64).tolist()
        decided = self._newest.get(series)
        if decided is None:
            return SeriesAnswer(series, [], own, "", 0.0)
        view = decided.decision.view if self._readers is not None else None
        direction = view.direction if view is not None and view.confidence > 0.0 else 0.0
        return SeriesAnswer(series, decided.quantiles.tolist(), own, decided.verdict.outcome.value, direction)

    def _record(self, decided: DecidedSeries) -> None:
        self._newest[decided.series] = decided


def _settings(asked: OpenCandidate) -> Settings:
    settings = Settings()
    for table, values in asked.tables.items():
        settings = override(settings, table, **values)
    return override(settings, "encoding", threads=1)  # none can be started later


def _lock(asked: OpenCandidate, control: int, locks_files: str) -> list[str]:
    readable = home = None
    if locks_files:
        home = Path(locks_files)
        named = asked.tables.get("models", {})
        folders = [Path(named[role]) for role in ("target", "draft") if named.get(role)]
        readable = [*_readable(), default_cache_folder(), *folders]
    return lock_process(control, asked.memory_bytes, asked.processor_s, readable, home)


def open_expert(source: str, config: ForecastConfig) -> Expert:
    """Run a candidate's file and make its expert. Raises: InvalidInput where it has none, or several."""
    namespace: dict[str, Any] = {"__name__": "candidate", "__file__": _FILE_NAME}
    exec(compile(source, _FILE_NAME, "exec"), namespace)
    found = [
        kind
        for kind in namespace.values()
        if isinstance(kind, type)
        and kind.__module__ == "candidate"
        and all(callable(getattr(kind, name, None)) for name in _EXPERT_METHODS)
    ]
    if len(found) != 1:
        raise InvalidInput(
            f"the file has {len(found)} experts: give one class with {', '.join(_EXPERT_METHODS)}, name and version"
        )
    expert: Any = found[0](config)
    if not isinstance(expert.name, str) or not isinstance(expert.version, str):
        raise InvalidInput("the expert needs a name and a version, both text")
    return cast("Expert", expert)


def _build(
    settings: Settings,
    readers: dict[Rung, NewsReader] | None,
    record: Watcher,
    experts: Sequence[Expert],
) -> DecisionLoop:
    nowhere = NullSink()
    return build_loop(
        settings, PushedFeed(), nowhere, nowhere, record, readers, is_recorded=False, more_experts=experts
    )


def _warm_up(settings: Settings, readers: dict[Rung, NewsReader] | None) -> None:
    """Do once what loads files and starts threads: after the lock nothing can."""
    loop = _build(settings, readers, _ignore, [])
    loop.begin()
    for event in _first_events(settings):
        loop.step(event)
    if readers is None:
        return
    for reader in readers.values():
        _ask(reader)
    encoder = open_encoder(settings.encoding)
    if encoder is not None:
        encoder.encode(["Its graph is written here."])


def _ignore(decided: DecidedSeries) -> None:
    del decided


def _first_events(settings: Settings) -> list[FeedItem]:
    day_ns = 86_400 * 10**9
    made: list[FeedItem] = []
    for place in range(settings.forecasting.history_bars + 2):
        end_ns = (place + 1) * day_ns
        close = 100.0 + place % 3
        made.append(
            Bar(
                end_ns,
                end_ns,
                "first",
                place + 1,
                "WARM",
                "1d",
                end_ns - day_ns,
                end_ns,
                100.0,
                103.0,
                99.0,
                close,
            )
        )
        made.append(TimePassed(end_ns + 1))
    return made


def _ask(reader: NewsReader) -> None:
    from htfi.wiring.models.checks import STANDARD_QUESTION

    reader.read([STANDARD_QUESTION], 1e9)


def _readable() -> list[Path]:
    """What a process that is in no namespaces may read and list from now on: Python and its modules."""
    from htfi import sample

    hidden = {Path(file) for file in sample.FILES}
    places = [Path(entry) for entry in sys.path if entry]
    found = [Path(sys.prefix), Path(sys.base_prefix), Path("/dev/urandom"), Path("/usr/lib")]
    for place in places:
        found += _beneath(place, hidden)
    return found


def _beneath(place: Path, hidden: set[Path]) -> list[Path]:
    """A folder; where something hidden is in it, all else that it holds."""
    if place in hidden:
        return []
    if not any(file.is_relative_to(place) for file in hidden):
        return [place]
    return [one for child in place.iterdir() for one in _beneath(child, hidden)]


def _last_line() -> str:
    """The error that is being handled, in one line, with the line of the candidate that raised it."""
    kind, error, trace = sys.exc_info()
    lines = [frame.lineno for frame in traceback.extract_tb(trace) if frame.filename == _FILE_NAME]
    where = f", line {lines[-1]}" if lines else ""
    return f"{kind.__name__ if kind else 'error'}{where}: {error}"[:300]


def _read(stream: BinaryIO) -> bytes:
    head = _exactly(stream, _LENGTH.size)
    return _exactly(stream, _LENGTH.unpack(head)[0]) if head else b""


def _exactly(stream: BinaryIO, num: int) -> bytes:
    parts = bytearray()
    while len(parts) < num:
        part = stream.read(num - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def _write(stream: BinaryIO, reply: Ready | Answers | LinkAnswers | Failure) -> None:
    frame = encode(reply)
    rest = memoryview(_LENGTH.pack(len(frame)) + frame)
    while rest:
        rest = rest[stream.write(rest) :]
