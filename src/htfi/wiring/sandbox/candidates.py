"""Finds out what a candidate is, and states it: kind, digest, lineage, the settings it is tried with."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from htfi import models
from htfi.domain.errors import InvalidInput
from htfi.governance.bundles.bundle import parse_bundle, read_note
from htfi.governance.sandbox.trials import CandidateKind
from htfi.wiring.models.loading import open_model
from htfi.wiring.settings import Settings, override

Tables = Mapping[str, dict[str, Any]]

MODEL_LINEAGE = "models"
_MAX_FILE_BYTES = 1 << 20
_LINK_TABLES = frozenset({"models", "decoding", "edge", "server", "turns"})
_NUMERIC_TABLES = frozenset({"market", "forecasting", "policy", "pipeline"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is tried. `lineage` names what it would take the place of: tries of one lineage are counted together.

    `tables` are the settings that differ from the champion's; `folders` are read by the process that tries it;
    `untried` says in words what of it no trial touches.
    """

    name: str
    kind: CandidateKind
    digest: str
    lineage: str
    place: Path
    tables: Tables = field(default_factory=dict[str, dict[str, Any]])
    expert: str = ""
    folders: tuple[Path, ...] = ()
    untried: tuple[str, ...] = ()

    @property
    def reads_news(self) -> bool:
        """Whether it can change what news is read to mean."""
        return self.kind is CandidateKind.MODEL or bool(set(self.tables) - _NUMERIC_TABLES)

    @property
    def over_link(self) -> bool:
        """Whether it can change what comes over the link between edge and cloud."""
        tables = set(self.tables) & _LINK_TABLES
        return bool(tables) and not self._leaves_shared_noise

    @property
    def not_tried(self) -> tuple[str, ...]:
        """What of it no trial touches, in words."""
        link = ("the link between edge and cloud, which needs decoding.rule 'coupled'",)
        return self.untried + (link if self._leaves_shared_noise else ())

    @property
    def _leaves_shared_noise(self) -> bool:
        return self.tables.get("decoding", {}).get("rule", "coupled") != "coupled"

    @property
    def is_numeric(self) -> bool:
        """Whether it can change numbers without news."""
        return self.kind is not CandidateKind.MODEL


def open_candidate(place: Path) -> Candidate:
    """What lies at `place`: a model folder, a TOML file of settings or of a bundle, or a Python file with an expert.

    Raises: InvalidInput.
    """
    if place.is_dir():
        return _models(place)
    match place.suffix:
        case ".toml":
            return _tables(place)
        case ".py":
            text = _read(place)
            if not text.strip():  # without code the champion alone would be tried, and pass
                raise InvalidInput(f"{place} is empty: give one class with the methods of an expert")
            digest = hashlib.sha256(text.encode()).hexdigest()
            return Candidate(
                place.name, CandidateKind.EXPERT, digest, f"expert:{place.stem}", place, expert=text
            )
        case _:
            raise InvalidInput(
                f"{place} is no candidate: give a model folder, a .toml file of settings or a bundle, or a .py file "
                "with an expert"
            )


def _models(place: Path) -> Candidate:
    """A folder of one model, or of a pair: folders whose names end in 'target' and 'draft'."""
    pair = {} if (place / "config.json").exists() else _pair_in(place)
    folders = {role: open_model(folder.resolve(), "int8").folder for role, folder in pair.items()}
    if not folders:
        only = open_model(place.resolve(), "int8").folder
        shipped = open_model(models.DRAFT, "int8").folder.architecture.hidden_size
        is_draft = only.architecture.hidden_size <= shipped or "draft" in place.name.lower()
        folders = {"draft" if is_draft else "target": only}
    digests = [folder.digest for folder in folders.values()]
    digest = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    return Candidate(
        place.resolve().name, CandidateKind.MODEL, digest, MODEL_LINEAGE, place.resolve(),
        tables={"models": {role: str(folder.path) for role, folder in folders.items()}},
        folders=tuple(folder.path for folder in folders.values()),
    )  # fmt: skip


def _pair_in(place: Path) -> dict[str, Path]:
    found = {
        role: folder
        for role in ("target", "draft")
        for folder in sorted(place.iterdir())
        if folder.name.endswith(role) and (folder / "config.json").exists()
    }
    return found if len(found) == 2 else {}


def _tables(place: Path) -> Candidate:
    text = _read(place)
    if text.lstrip().startswith("[bundle]"):
        return _bundle(place, text)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{place}: not valid TOML: {error}") from error
    digest = hashlib.sha256(text.encode()).hexdigest()
    _checked(tables, place)
    for role in ("target", "draft"):
        if tables.get("models", {}).get(role):
            raise InvalidInput(
                f"{place}: models.{role} names a folder, whose content this file does not fix: try the folder itself"
            )
    return Candidate(place.name, CandidateKind.SETTINGS, digest, "settings", place, tables=tables)


def _bundle(place: Path, text: str) -> Candidate:
    """A policy bundle, signed or not: its limits are tried, its other tables are not."""
    try:
        bundle = parse_bundle(read_note(text, str(place)).text)
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error}") from error
    tables = tomllib.loads(bundle.text)
    policy = {"policy": tables["policy"]} if "policy" in tables else {}
    untried = tuple(f"[{name}]" for name in tables if name not in ("bundle", "policy"))
    return Candidate(
        place.name, CandidateKind.BUNDLE, bundle.digest, "bundle", place, tables=policy, untried=untried
    )


def _checked(tables: Mapping[str, Any], place: Path) -> None:
    settings = Settings()
    for table, values in tables.items():
        if not isinstance(values, dict):
            raise InvalidInput(f"{place}: '{table}' is outside a table: begin with one such as [forecasting]")
        settings = override(settings, table, str(place), **cast("dict[str, Any]", values))


def _read(place: Path) -> str:
    try:
        if place.stat().st_size > _MAX_FILE_BYTES:
            raise InvalidInput(f"{place} is larger than 1 MB: a candidate's file is not")
        return place.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{place}: {error.strerror}: check the path") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{place}: not UTF-8 text: {error.reason}") from error
