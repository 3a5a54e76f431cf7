"""The models that ship: htfi-mini in two sizes, each held to its digest. Wiring opens them."""

from pathlib import Path

TARGET = Path(__file__).parent / "mini-target"
DRAFT = Path(__file__).parent / "mini-draft"

# SHA-256 over configuration, weights and vocabulary: a changed byte is refused.
DIGESTS: dict[Path, str] = {
    TARGET: "a48b07cce58369081934589bf20d5c6f376231c2f525bb5341aa3e148e359f34",
    DRAFT: "3236376f01938924aa4aa83f325a44e82c9f8553a3450cff577cb7f5a31922e7",
}
