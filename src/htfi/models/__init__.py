"""The models that ship: htfi-mini in two sizes, each held to its digest. Wiring opens them."""

from pathlib import Path

TARGET = Path(__file__).parent / "mini-target"
DRAFT = Path(__file__).parent / "mini-draft"

# SHA-256 over configuration, weights and vocabulary: a changed byte is refused.
DIGESTS: dict[Path, str] = {}
