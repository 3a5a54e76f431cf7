"""The machine-readable mark of generated content (AI Act, Regulation (EU) 2024/1689, art. 50(2)); one place for all.

Pages have it as meta tags, JSON documents as the field `content_marking`, Parquet tables as metadata of the schema.
Lines of decisions.jsonl are the ledger's, byte for byte: a file in their folder marks them.
"""

from collections.abc import Sequence

import msgspec

FIELD = "content_marking"
MARKING_FILE = "content_marking.json"
TEXT_FIELDS = ("rationale.text", "rationale", "view.words")  # of decisions, that hold generated text
# IPTC NewsCodes: content that a trained model generated, and content of rules and figures alone.
_GENERATED, _COMPUTED = "trainedAlgorithmicMedia", "algorithmicMedia"


def content_marking(*, is_generated: bool = True) -> dict[str, object]:
    """The fields of the mark; without generated text they say so."""
    return {
        "artificially_generated": is_generated,
        "digital_source_type": _GENERATED if is_generated else _COMPUTED,
        "generator": "htfi",
        "basis": "Regulation (EU) 2024/1689 art. 50(2)",
    }


def marking_meta(*, is_generated: bool = True) -> str:
    """The meta tags of a page."""
    mark = content_marking(is_generated=is_generated)
    return (
        f'<meta name="generator" content="{mark["generator"]}">\n'
        f'<meta name="artificially-generated" content="{str(is_generated).lower()}">\n'
        f'<meta name="digital-source-type" content="{mark["digital_source_type"]}">'
    )


def marking_metadata() -> dict[bytes, bytes]:
    """The metadata of a Parquet schema."""
    return {FIELD.encode(): msgspec.json.encode(content_marking())}


def marking_file(names: Sequence[str], fields: Sequence[str]) -> bytes:
    """The content of a folder's `MARKING_FILE`: its files with generated text, and the fields that hold it."""
    body = {**content_marking(), "files": list(names), "fields": list(fields)}
    return msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"
