"""Promotes a distilled draft to the current one, and switches a running service to it between requests.

A folder of drafts holds each under its digest's name and one small pointer, replaced as a whole. A reader of the
pointer sees the old draft or the new one, never half of one.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.ports import Tokenizer
from htfi.domain import files
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput
from htfi.domain.generation import (
    Completion,
    GenerationRequest,
    PromptDialect,
    RequestRefused,
    SpeculationStats,
)

POINTER = "promoted.json"


class DraftModel(Protocol):
    """A model whose files were found whole and that can be loaded."""

    @property
    def folder(self) -> ModelFolder: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def version(self) -> str: ...


class DraftedGenerator(Protocol):
    """A generator that some draft speeds up."""

    @property
    def version(self) -> str: ...

    @property
    def dialect(self) -> PromptDialect: ...

    @property
    def speculation_stats(self) -> SpeculationStats | None: ...

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]: ...


class GeneratorWrapper:
    """What a generator states about itself, passed on by one around it."""

    _generator: DraftedGenerator

    @property
    def version(self) -> str:
        return self._generator.version

    @property
    def dialect(self) -> PromptDialect:
        return self._generator.dialect

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        return self._generator.speculation_stats


Model = TypeVar("Model", bound=DraftModel)


class PromotionPointer(msgspec.Struct, frozen=True):
    """The pointer: a folder's name beside it and that folder's digest, whose draft it replaced, and by how much.

    `acceptance` holds the shares before and after on held-back questions.
    """

    folder: str
    digest: str
    replaced: str
    acceptance: tuple[float, float]


def promote(drafts: Path, candidate: Path, replaced: str, acceptance: tuple[float, float]) -> Path:
    """Move a whole model folder into `drafts` and point at it; where it lies now. Raises: DependencyUnavailable."""
    digest = ModelFolder.open(candidate).digest
    folder = drafts / f"draft-{digest[:12]}"
    try:
        if _is_intact(folder, digest):  # promoted before: who reads it now is not disturbed
            shutil.rmtree(candidate)
        else:
            if folder.exists():
                shutil.rmtree(folder)
            candidate.rename(folder)
    except OSError as error:
        raise DependencyUnavailable(f"{folder} cannot be written: {error.strerror}") from error
    pointer = PromotionPointer(folder.name, digest, replaced, acceptance)
    try:
        files.write_atomically(drafts / POINTER, msgspec.json.encode(pointer) + b"\n")
    except OSError as error:
        raise DependencyUnavailable(f"{drafts / POINTER} cannot be written: {error.strerror}") from error
    return folder


def _is_intact(folder: Path, digest: str) -> bool:
    try:
        return ModelFolder.open(folder).digest == digest
    except HtfiError:
        return False


def read_promoted(drafts: Path) -> PromotionPointer | None:
    """What `drafts` points at, None where nothing was promoted yet. Raises: InvalidInput, DependencyUnavailable."""
    try:
        content = (drafts / POINTER).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DependencyUnavailable(f"{drafts / POINTER} cannot be read: {error.strerror}") from error
    try:
        found = msgspec.json.decode(content, type=PromotionPointer)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"{drafts / POINTER} is damaged ({error}): promote a draft again") from error
    if Path(found.folder).name != found.folder or found.folder in ("", ".", ".."):
        raise InvalidInput(f"{drafts / POINTER} names {found.folder!r}, which is not a folder beside it")
    return found


class PromotedDraftSource(Generic[Model]):
    """The current draft of a running service: `first`, until another is promoted in `drafts`.

    What was promoted but is not whole, or has another vocabulary, is reported once and passed over. `open_like` opens
    a folder as the model given was opened.
    """

    def __init__(
        self,
        drafts: Path,
        first: Model,
        open_like: Callable[[Path, Model], Model],
        report: Callable[[str], None],
    ) -> None:
        self._pointer = drafts / POINTER
        self._drafts = drafts
        self._opened = first
        self._open_like = open_like
        self._report = report
        self._seen: tuple[int, int, int] | None = None

    def current(self) -> Model:
        """One look at the pointer's stamp, unless that has changed. Ask between requests; never raises."""
        try:
            found = os.stat(self._pointer)  # noqa: PTH116 (a third of the time of Path.stat, at every request)
        except OSError:
            return self._opened
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp != self._seen:
            self._seen = stamp
            try:
                self._opened = self._open_promoted()
            except HtfiError as error:
                self._report(
                    f"the promoted draft cannot be used, {self._opened.folder.path.name} stays: {error}"
                )
        return self._opened

    def _open_promoted(self) -> Model:
        promoted = read_promoted(self._drafts)
        if promoted is None or promoted.digest == self._opened.folder.digest:
            return self._opened
        opened = self._open_like(self._drafts / promoted.folder, self._opened)
        if opened.folder.digest != promoted.digest:
            raise InvalidInput(f"{opened.folder.path} was changed after it was promoted")
        if opened.tokenizer.digest != self._opened.tokenizer.digest:
            raise InvalidInput(f"{opened.folder.path} has another tokenizer")
        return opened


class PromotedDraftGenerator(GeneratorWrapper, Generic[Model]):
    """The generator that `build` makes of the current draft, made again between requests when another is promoted.

    Where that fails the one before stays in use, and `report` is called once. Raises what `build` raises for the first.
    """

    def __init__(
        self,
        promoted: PromotedDraftSource[Model],
        build: Callable[[Model], DraftedGenerator],
        report: Callable[[str], None],
    ) -> None:
        self._promoted = promoted
        self._build = build
        self._report = report
        self._draft = promoted.current()
        self._generator = build(self._draft)

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        """One answer per request, in order."""
        draft = self._promoted.current()
        if draft is not self._draft:
            self._draft = draft  # one that cannot be loaded is not tried at every request
            try:
                self._generator = self._build(draft)
            except (DependencyUnavailable, InvalidInput) as error:
                self._report(f"promoted draft {draft.version} cannot be used, the one before stays: {error}")
        return self._generator.write(requests)
