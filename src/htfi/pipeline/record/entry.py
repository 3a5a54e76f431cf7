"""Entries of the ledger: `encode_entry` writes version 4, compact and canonical; `decode_entry` reads every version.

Version 1 is the decision's JSON (`domain.decision.encode_decision`), which begins with '{'. Later versions are a
MessagePack array [version, models, fields, forecast, rationale, id] (docs/record.md). `fields` are those of `Decision`
that are not named here; `id` is nil where it follows from series and instant. Values are packed by their types
(`fields`), the forecast's tables as whole numbers (`ticks`), in bytes or, since version 3, in bits; of the rationale
what is needed to word it again (`wording`). Each version has its own known texts. Equal decisions give equal bytes.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from htfi.domain.decision import (
    Decision,
    DecisionTrigger,
    PolicyOutcome,
    PolicyVerdict,
    Rationale,
    amendment_id,
    decision_id,
    decode_decision,
    encode_decision,
    news_decision_id,
    series_id,
)
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.news_view import NewsView
from htfi.narrative.rationale.writer import in_slot_order
from htfi.pipeline.record.fields import field_place, packer_of, struct_packer
from htfi.pipeline.record.forecast import FLOATS, pack_forecast, unpack_forecast
from htfi.pipeline.record.plain import Plain, SpelledTexts, TextPlaces
from htfi.pipeline.record.wording import RationaleFacts, facts_of, with_words, worded
from htfi.pipeline.record.words import VERSION, WORDS


class _EntryName(msgspec.Struct):
    id: str


class _ForecastAxes(msgspec.Struct):
    horizons: tuple[int, ...]
    levels: tuple[float, ...]


class _EntryAxes(msgspec.Struct):
    forecast: _ForecastAxes
    verdict: PolicyVerdict
    trigger: DecisionTrigger | UnsetType = UNSET


PACKED_APART = frozenset(
    {"id", "models", "forecast", "rationale"}
)  # fields of a decision with a place of their own
_FIELDS = struct_packer(Decision, PACKED_APART)
_VIEW, _AMENDS, _TRIGGER, _VERDICT = (
    field_place(Decision, name, PACKED_APART) for name in ("view", "amends", "trigger", "verdict")
)
_WITHHELD_PLACE = tuple(PolicyOutcome).index(PolicyOutcome.WITHHOLD)
_TRACE = field_place(NewsView, "trace")
_MODELS = packer_of(dict[str, str])
_RATIONALE = packer_of(RationaleFacts)
ENCODER, _PART_DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder()
_DECODER = msgspec.msgpack.Decoder(tuple[Plain, msgspec.Raw, Plain, Plain, Plain, Plain])
_NAME_DECODER, _AXES_DECODER = msgspec.json.Decoder(_EntryName), msgspec.json.Decoder(_EntryAxes)
_ARRAY_HEAD = b"\x96"  # of six values
_NO_RATIONALE = Rationale("", "", {}, [], [])
_UNPACKING_ERRORS = (
    ValueError, TypeError, IndexError, KeyError, OverflowError, InvalidInput, msgspec.DecodeError
)  # fmt: skip


def encode_entry(decision: Decision, version: int = VERSION) -> bytes:
    """A decision's entry, of version 2 or later. Raises: IntegrityError where a number is not finite."""
    try:
        return ENCODER.encode(_packed(decision, version))
    except IntegrityError as error:
        raise IntegrityError(
            f"{decision.id}: a number is not finite and cannot be recorded: {error}"
        ) from error


def _packed(decision: Decision, version: int) -> list[Plain]:
    models, known = packed_models(tuple(decision.models.items()), version)
    texts = TextPlaces(known)
    fields = _FIELDS.pack(decision, texts)
    forecast = pack_forecast(decision.forecast, texts, version)
    rationale = _RATIONALE.pack(facts_of(decision), texts)
    name = None if decision.id == _usual_id(decision) else texts.pack(decision.id)
    return [version, models, fields, forecast, rationale, name]


def decode_entry(entry: bytes) -> Decision:
    """The decision of an entry of any version. Raises: msgspec.ValidationError where it is none."""
    if is_json(entry):
        return decode_decision(entry)
    try:
        version, models, fields, forecast, rationale, name = _DECODER.decode(entry)
        _check_version(version)
        named, known = _unpacked_models(bytes(models), version)
        texts = SpelledTexts(known)
        values: dict[str, Any] = _FIELDS.unpack(fields, texts)
        whole = unpack_forecast(forecast, texts, version)
        decision = Decision(id="", models=dict(named), forecast=whole, rationale=_NO_RATIONALE, **values)
        decision = msgspec.structs.replace(
            decision, rationale=worded(_RATIONALE.unpack(rationale, texts), decision)
        )
        found = _usual_id(decision) if name is None else texts.unpack(name)
    except _UNPACKING_ERRORS as error:
        raise msgspec.ValidationError(f"not an entry of a decision: {error}") from error
    return msgspec.structs.replace(decision, id=found)


def _check_version(version: Plain) -> None:
    """Raises: ValueError where entries of such a version are not known."""
    if version not in WORDS:
        raise ValueError(f"version {version}, this program knows up to {VERSION}: update htfi")


_KNOWN = {version: {text: place for place, text in enumerate(known)} for version, known in WORDS.items()}


@lru_cache(maxsize=64)
def packed_models(items: tuple[tuple[str, str], ...], version: int = VERSION) -> tuple[Plain, dict[str, int]]:
    """The versions of a run's parts, the same in most of its entries, and the places of texts after them."""
    texts = TextPlaces(_KNOWN[version])
    return _MODELS.pack(dict(items), texts), texts.places()


@lru_cache(maxsize=64)
def _unpacked_models(packed: bytes, version: int) -> tuple[dict[str, str], list[str]]:
    """The versions of a run's parts, the same in most of its entries, and the texts known after them."""
    texts = SpelledTexts(WORDS[version])
    return _MODELS.unpack(_PART_DECODER.decode(packed), texts), texts.texts


def try_decode_entry(entry: bytes) -> Decision | None:
    """The decision that an entry holds, None where it is something else."""
    try:
        return decode_entry(entry)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def entry_id(entry: bytes) -> str | None:
    """The id of the decision that an entry holds, without decoding the rest; None where it is something else."""
    try:
        if is_json(entry):
            return _NAME_DECODER.decode(entry).id
        version, models, fields, _, _, name = _DECODER.decode(entry)
        _check_version(version)
        if isinstance(name, int):
            return decode_entry(entry).id
        texts = SpelledTexts(_unpacked_models(bytes(models), version)[1])
        if name is not None:
            return texts.unpack(name)
        symbol, interval = texts.unpack(fields[0]), texts.unpack(fields[1])
        is_between_bars, is_amended = (_packed_field(fields, place) for place in (_TRIGGER, _AMENDS))
        return _id_of(series_id(symbol, interval), fields[2], is_between_bars, is_amended)
    except _UNPACKING_ERRORS:
        return None


def has_reading(entry: bytes) -> bool:
    """Whether an entry of a decision holds what a model of ours wrote for it, without decoding the rest."""
    if is_json(entry):
        return b'"wording":{' in entry
    try:
        fields = _DECODER.decode(entry)[2]
        return _packed_field(fields, _VIEW) and _packed_field(fields[_VIEW], _TRACE)
    except _UNPACKING_ERRORS:
        return False


class EntryAxes(NamedTuple):
    """What says which columns a table of decisions has: horizons and levels of an entry, none where policy kept it
    back, and whether news triggered it.
    """

    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    is_triggered: bool


def entry_axes(entry: bytes) -> EntryAxes:
    """The axes of an entry, without decoding the rest. Raises: msgspec.ValidationError where it is no decision."""
    if is_json(entry):
        told = _AXES_DECODER.decode(entry)
        axes = EntryAxes(told.forecast.horizons, told.forecast.levels, told.trigger is not UNSET)
        is_withheld = told.verdict.outcome is PolicyOutcome.WITHHOLD
    else:
        try:
            version, _, fields, forecast, _, _ = _DECODER.decode(entry)
            _check_version(version)
            levels = tuple(FLOATS.unpack(forecast[1], SpelledTexts(())))
            axes = EntryAxes(tuple(forecast[0]), levels, _packed_field(fields, _TRIGGER))
            is_withheld = fields[_VERDICT][0] == _WITHHELD_PLACE
        except _UNPACKING_ERRORS as error:
            raise msgspec.ValidationError(f"not an entry of a decision: {error}") from error
    return EntryAxes((), (), axes.is_triggered) if is_withheld else axes


def _packed_field(packed: Sequence[Plain], place: int) -> bool:
    """Whether a packed struct has something other than the default in a field."""
    return place < len(packed) and packed[place] is not None


def encode_worded(decision: Decision) -> bytes:
    """Version 1 of a decision's entry, JSON with its words. Raises: IntegrityError as `encode_entry`."""
    return encode_decision(with_words(decision))


def encode_like(decision: Decision, entry: bytes) -> bytes:
    """The decision in the version of another entry: a ledger goes on in the version of its last one."""
    return encode_as(decision, entry_version(entry))


def encode_as(decision: Decision, version: int) -> bytes:
    """A decision's entry of any version. Raises: IntegrityError as `encode_entry`."""
    return encode_worded(decision) if version == 1 else encode_entry(decision, version)


def entry_version(entry: bytes) -> int:
    """The version of an entry of a decision; of something else it may be any that is known."""
    if is_json(entry):
        return 1
    return entry[1] if len(entry) > 1 and entry[1] in WORDS else VERSION


def has_known_version(entry: bytes) -> bool:
    """Whether an entry begins as those of decisions do that this program reads; the rest is not looked at."""
    return is_json(entry) or (entry[:1] == _ARRAY_HEAD and len(entry) > 1 and entry[1] in WORDS)


def is_entry_of(entry: bytes, decision: Decision) -> bool:
    """Whether an entry holds this decision. Amendments as JSON had their slots in the order of their making once."""
    made = encode_like(decision, entry)
    if made == entry or not (is_json(entry) and decision.amends):
        return made == entry
    recorded = decode_decision(entry)
    if encode_decision(recorded) != entry:
        return False
    ordered = in_slot_order(recorded.rationale.slots)
    if len(ordered) != len(recorded.rationale.slots):
        return False
    rationale = msgspec.structs.replace(recorded.rationale, slots=ordered)
    return encode_decision(msgspec.structs.replace(recorded, rationale=rationale)) == made


def entry_json(entry: bytes, decision: Decision | None = None) -> bytes:
    """The decision of an entry as JSON: of version 1 its bytes. `decision` is what it holds, where that is at hand.

    Raises: msgspec.ValidationError.
    """
    return entry if is_json(entry) else encode_worded(decision or decode_entry(entry))


def is_json(entry: bytes) -> bool:
    """Whether an entry is of version 1, a decision as JSON."""
    return entry[:1] == b"{"


def _usual_id(decision: Decision) -> str:
    return _id_of(decision.series, decision.as_of_ns, decision.is_between_bars, bool(decision.amends))


def _id_of(series: str, as_of_ns: int, is_between_bars: bool, is_amended: bool) -> str:
    first = news_decision_id(series, as_of_ns) if is_between_bars else decision_id(series, as_of_ns)
    return amendment_id(first) if is_amended else first
