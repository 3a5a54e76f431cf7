"""Every setting of a run in one typed value: defaults, then a TOML file, then the environment. Apps ask for it.

An unknown key, a value of the wrong type or out of range stops the start with one line. The digest of the
settings goes into every decision.

What no user would change is a constant in the package that owns it. Constants that shape decisions and were settings
once are still written into settings.json: the file states every parameter, its digest does not change when a setting
becomes a constant, and a run of an earlier version is read by what it states.
"""

import hashlib
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import msgspec

from htfi.decoding.config import DecodingConfig, EdgeConfig, VerificationServerConfig
from htfi.domain.errors import InvalidInput
from htfi.domain.order_limits import OrderLimits
from htfi.domain.settings import check_keys, check_values, toml_value
from htfi.execution.algorithms.config import AlgorithmConfig
from htfi.execution.config import TradingConfig
from htfi.forecasting.config import DEFAULT_COVARIATES, ForecastConfig
from htfi.governance.config import PolicyConfig, RecordConfig
from htfi.market.config import MarketConfig
from htfi.narrative.config import (
    EncodingConfig,
    NarrativeConfig,
    PrefetchingConfig,
    RoutingConfig,
    SuspicionConfig,
    TriggersConfig,
)
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.pipeline.config import PipelineConfig
from htfi.scheduling.config import FidelityConfig, PlacementConfig, TurnsConfig
from htfi.scheduling.health.config import HealthConfig
from htfi.simulation.venue.config import ListedVenueConfig, VenueConfig
from htfi.wiring.config import ClusterConfig
from htfi.wiring.models.config import CacheConfig, ModelsConfig

ENV_PREFIX = "HTFI_"
_RESULT_SHAPING_DECODING = (
    "block_tokens",
    "strategy",
    "draft_length",
    "max_draft_length",
    "plain_above",
    "max_batch",
)
_APART_TABLES = (
    "cache",
    "cluster",
    "edge",
    "server",
    "turns",
    "placement",
    "health",
    "trading",
    "order_limits",
    "venue",
    "algorithms",
)  # how work is shared among machines, and what is done with decisions: neither shapes a decision
SETTINGS_FILE = "settings.json"  # where a run leaves those it was made under

# Constants that settings.json states beside the settings; each is that name in capitals in the module of its table.
RECORDED_CONSTANTS = {
    "forecasting": (
        "residual_half_trust", "usual_window_bars", "session_gap_bars", "calibration_gain", "shared_calibration_gain",
    ),
    "narrative": (
        "min_weight", "max_items_per_symbol", "max_headline_chars", "max_body_chars", "usual_half_life_bars",
        "usual_min_bars",
    ),
    "sanitiser": (
        "noted_below", "max_headline_chars", "max_body_chars", "window_ns", "max_items", "near_alike", "good_standing",
        "max_sources", "max_symbols", "burst_ns", "burst_voices", "burst_repeats", "claim_ns", "late_ns", "early_ns",
        "max_symbols_moved",
    ),
    "encoding": ("max_tokens", "max_recent", "recent_half_life_ns"),
    "suspicion": (
        "share_for_all", "extreme_divergence", "low_trust", "grave_rules", "least_share_for_all", "off_at",
        "plain_weight", "grave_weight", "half_life_ns", "max_scopes",
    ),
    "prefetching": ("early_s", "reading_ms"),
    "market": ("cross_patience",),
}  # fmt: skip
_CONSTANT_NAMES = {
    ("sanitiser", "good_standing"): "GOOD_CREDIBILITY",
    ("suspicion", "least_share_for_all"): "MIN_SHARE_FOR_ALL",
    ("suspicion", "off_at"): "CALM_BELOW",
    ("suspicion", "plain_weight"): "FINDING_WEIGHT",
    ("suspicion", "grave_weight"): "GRAVE_FINDING_WEIGHT",
    ("suspicion", "half_life_ns"): "SUSPICION_HALF_LIFE_NS",
}


# Names of 0.1.0, which files and the environment may still use: TABLE, or TABLE.KEY with the table's name of today.
EARLIER_NAMES = {
    "secure": "suspicion",
    "buffering": "prefetching",
    "desk": "server",
    "narrative.names": "symbol_names",
    "sanitiser.max_moved_alone": "max_influence_unconfirmed",
    "sanitiser.max_moved_confirmed": "max_influence_confirmed",
    "sanitiser.kinds": "source_kinds",
    "routing.tagged_relevance": "min_tagged_relevance",
    "routing.draft_worth": "min_draft_worth",
    "routing.target_worth": "min_target_worth",
    "routing.frontier_worth": "min_frontier_worth",
    "routing.position": "default_position",
    "routing.frontier_cents": "frontier_cents_per_reading",
    "suspicion.on_at": "symbol_threshold",
    "suspicion.on_at_for_all": "market_threshold",
    "suspicion.most_weight": "max_view_weight",
    "models.drafts": "promoted_drafts",
    "models.recent": "replay_buffer",
    "decoding.lookahead": "draft_length",
    "decoding.max_draft": "max_draft_length",
    "pipeline.max_awaited": "max_pending_amendments",
    "pipeline.listen_ms": "late_poll_ms",
    "pipeline.linger_ms": "late_wait_ms",
    "cluster.desk": "leader_group",
    "edge.patience_ms": "reconnect_wait_ms",
    "edge.late_ms": "late_answer_timeout_ms",
    "turns.max_waiting_each": "max_waiting_per_tenant",
    "health.beat_ms": "heartbeat_ms",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """One field per table of the TOML file."""

    market: MarketConfig = field(default_factory=MarketConfig)
    forecasting: ForecastConfig = field(default_factory=ForecastConfig)
    narrative: NarrativeConfig = field(default_factory=NarrativeConfig)
    sanitiser: SanitiserConfig = field(default_factory=SanitiserConfig)
    encoding: EncodingConfig = field(default_factory=EncodingConfig)
    routing: RoutingConfig = field(default_factory=RoutingConfig)
    suspicion: SuspicionConfig = field(default_factory=SuspicionConfig)
    prefetching: PrefetchingConfig = field(default_factory=PrefetchingConfig)
    triggers: TriggersConfig = field(default_factory=TriggersConfig)
    models: ModelsConfig = field(default_factory=ModelsConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    scheduling: FidelityConfig = field(default_factory=FidelityConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    record: RecordConfig = field(default_factory=RecordConfig)
    pipeline: PipelineConfig = field(default_factory=PipelineConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    edge: EdgeConfig = field(default_factory=EdgeConfig)
    server: VerificationServerConfig = field(default_factory=VerificationServerConfig)
    turns: TurnsConfig = field(default_factory=TurnsConfig)
    placement: PlacementConfig = field(default_factory=PlacementConfig)
    health: HealthConfig = field(default_factory=HealthConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
    trading: TradingConfig = field(default_factory=TradingConfig)
    order_limits: OrderLimits = field(default_factory=OrderLimits)
    venue: VenueConfig = field(default_factory=VenueConfig)
    algorithms: AlgorithmConfig = field(default_factory=AlgorithmConfig)


_TABLES = tuple(item.name for item in fields(Settings))


def load_settings(
    file: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType(os.environ),
    promoted: Mapping[str, dict[str, Any]] = MappingProxyType({}),
) -> Settings:
    """Defaults, overlaid by `promoted` tables, by `file`, by HTFI_<TABLE>__<KEY> variables. Raises: InvalidInput."""
    settings = _overlay(Settings(), dict(promoted), "the promoted settings")
    if file is not None:
        settings = _overlay(settings, _read_toml(file), str(file))
    return _overlay(settings, _from_environment(environment), "the environment")


def override(settings: Settings, table: str, origin: str = "the command line", /, **values: Any) -> Settings:
    """Settings with some keys of one table replaced, checked as if they came from a file. Raises: InvalidInput.

    `origin` is where the values come from, in messages.
    """
    return _overlay(settings, {table: values}, origin)


def with_venues(settings: Settings, file: Path) -> Settings:
    """Settings with the venues of a TOML file, a table each with the keys of [venue]. Raises: InvalidInput."""
    listed = _read_toml(file)
    known = [item.name for item in fields(ListedVenueConfig)]
    for name, values in listed.items():
        if not isinstance(values, dict):
            raise InvalidInput(f"{file}: '{name}' must be a table of a venue, such as [{name}]")
        try:
            check_keys(name, cast("dict[str, Any]", values), known)
        except InvalidInput as error:
            raise InvalidInput(f"{file}: {error}") from error
    if not listed:
        raise InvalidInput(f"{file}: no venue: write a table for each, such as [XNYS]")
    return override(settings, "venue", str(file), by_name=listed)


def encode_settings(settings: Settings, *, earlier_names: bool = False) -> bytes:
    """The settings that shape a decision, as canonical JSON; `earlier_names` gives the bytes that 0.1.0 wrote.

    Left out: how decisions are grouped and saved; how much memory models may take; where models and calendars are
    stored, since decisions name them by digest; other machines, since a decision records where it was read.
    """
    shaping = asdict(settings)
    for table in _APART_TABLES:
        del shaping[table]
    for table, keys in RECORDED_CONSTANTS.items():
        shaping[table] |= {key: constant(table, key) for key in keys}
    shaping["narrative"]["calendar"] = ""  # nor where a calendar lies: its digest stands in the decisions
    shaping["forecasting"]["foundation"] = ""  # its version, a digest of the model, stands in the decisions
    del shaping["forecasting"]["pooled"]  # likewise; left out, so that digests of earlier runs hold
    if (
        settings.forecasting.covariates == DEFAULT_COVARIATES
    ):  # left out, so that digests of earlier runs hold
        del shaping["forecasting"]["covariates"]
    for key in ("renames", "splits"):  # left out where there are none, so that digests of earlier runs hold
        if not getattr(settings.market, key):
            del shaping["market"][key]
    shaping["models"] = {"engine": settings.models.engine, "precision": settings.models.precision}
    del shaping["encoding"]["threads"]
    if settings.encoding.model != "none":  # decisions name the encoder by its digest
        del shaping["encoding"]["model"]
    decoding = settings.decoding
    shaping["decoding"] = {key: getattr(decoding, key) for key in _RESULT_SHAPING_DECODING}
    if not settings.narrative.trace:  # left out otherwise, so that digests of earlier runs hold
        del shaping["narrative"]["trace"]
    if decoding.rule != "coupled":  # left out otherwise, so that digests of earlier runs hold
        shaping["decoding"]["rule"] = decoding.rule
    if settings.triggers == TriggersConfig():  # left out otherwise, so that digests of earlier runs hold
        del shaping["triggers"]
    if settings.record == RecordConfig():  # left out otherwise, so that digests of earlier runs hold
        del shaping["record"]
    shaping["pipeline"] = {"deadline_ms": settings.pipeline.deadline_ms}
    if earlier_names:
        shaping = _with_earlier_names(shaping)
    return msgspec.json.encode(shaping, order="deterministic")


def decode_settings(data: bytes, *, to_verify: bool = False) -> Settings:
    """The settings that a run left behind, an earlier version's too. Raises: InvalidInput.

    A parameter that has since become a constant must equal that constant, or the forecasts of the run could not be
    made here. With `to_verify` it may have any value: no constant takes part in judging an entry.
    """
    try:
        tables = msgspec.json.decode(data, type=dict[str, dict[str, Any]])
    except msgspec.DecodeError as error:
        raise InvalidInput(f"these are not the settings of a run: {error}") from error
    tables = _with_new_names(tables, "the saved settings")
    for table, keys in RECORDED_CONSTANTS.items():
        for key in keys:
            stated = tables.get(table, {}).pop(key, None)
            fixed = constant(table, key)
            if to_verify or stated is None:
                continue
            if msgspec.json.encode(stated) != msgspec.json.encode(fixed):
                raise InvalidInput(
                    f"the run was made with {table}.{key} = {toml_value(stated)}, which this version fixes at "
                    f"{toml_value(fixed)}: use the version that made it"
                )
    return _overlay(Settings(), tables, "the saved settings")


def constant(table: str, key: str) -> Any:
    """The constant that a key of a table stands for; None where there is none."""
    name = _CONSTANT_NAMES.get((table, key), key.upper())
    return vars(sys.modules[_table_types()[table].__module__]).get(name)


@cache
def _table_types() -> dict[str, type[Any]]:
    settings = Settings()
    return {item.name: type(getattr(settings, item.name)) for item in fields(Settings)}


def settings_digest(settings: Settings) -> str:
    """SHA-256 (hex) of `encode_settings`."""
    return digest_of(encode_settings(settings))


def digest_of(data: bytes) -> str:
    """SHA-256 (hex) of a settings.json."""
    return hashlib.sha256(data).hexdigest()


def settings_to_record(settings: Settings, recorded: bytes | None) -> bytes:
    """What settings.json states of a run: it keeps the names that it was begun with, so that its digest holds."""
    earlier = encode_settings(settings, earlier_names=True)
    return earlier if recorded == earlier else encode_settings(settings)


def _with_new_names(tables: dict[str, Any], origin: str) -> dict[str, dict[str, Any]]:
    """Tables in which each earlier name stands as the one of today. Raises: InvalidInput where both are given."""
    renamed: dict[str, dict[str, Any]] = {}
    for table, values in tables.items():
        name = EARLIER_NAMES.get(table, table)
        check_keys(origin, [name], _TABLES, "table")
        if not isinstance(values, dict):
            raise InvalidInput(f"{origin}: '{table}' must be a table, such as [{name}]")
        known = renamed.setdefault(name, {})
        for key, value in cast("dict[str, Any]", values).items():
            new = EARLIER_NAMES.get(f"{name}.{key}", key)
            if new in known:
                raise InvalidInput(
                    f"{origin}: {name}.{new} is given twice, once by an earlier name: keep one"
                )
            known[new] = value
    return renamed


def _with_earlier_names(tables: dict[str, Any]) -> dict[str, Any]:
    earlier = {
        new if "." not in old else f"{old.partition('.')[0]}.{new}": old for old, new in EARLIER_NAMES.items()
    }
    return {
        earlier.get(table, table): {
            earlier.get(f"{table}.{key}", f".{key}").partition(".")[2]: value for key, value in values.items()
        }
        for table, values in tables.items()
    }


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"settings {file}: {error.strerror}: check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"settings {file}: not valid TOML: {error}") from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for name, text in environment.items():
        table, found, key = name.removeprefix(ENV_PREFIX).partition("__")
        if name.startswith(ENV_PREFIX) and found:
            tables.setdefault(table.lower(), {})[key.lower()] = _parse_value(text)
    return tables


def _parse_value(text: str) -> Any:
    """A TOML value where it reads as one, else the text itself, so that a plain word needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _overlay(settings: Settings, tables: dict[str, Any], origin: str) -> Settings:
    for table, values in _with_new_names(tables, origin).items():
        changed = _overlay_table(table, getattr(settings, table), values, origin)
        settings = replace(settings, **{table: changed})
    return settings


def _overlay_table(table: str, settings: Any, values: dict[str, Any], origin: str) -> Any:
    known = [item.name for item in fields(settings) if item.metadata.get("meaning")]
    for key in values:
        if key not in known:
            fixed = constant(table, key)
            if fixed is not None:
                raise InvalidInput(
                    f"{origin}: {table}.{key} is not a setting: it is fixed at {toml_value(fixed)}; remove it"
                )
    kind = cast("type[Any]", type(settings))
    try:
        check_keys(table, values, known)
        check_values(table, kind, values)
        return msgspec.convert({**asdict(settings), **values}, kind)
    except InvalidInput as error:
        raise InvalidInput(f"{origin}: {error}") from error
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{origin}: {table}: {error}") from error
