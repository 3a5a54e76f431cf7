"""The models that ship: htfi-mini in two sizes, each held to its digest. Wiring opens them."""

from pathlib import Path

TARGET = Path(__file__).parent / "mini-target"
DRAFT = Path(__file__).parent / "mini-draft"
HEADS = Path(__file__).parent / "heads"

# SHA-256 over configuration, weights and vocabulary: a changed byte is refused.
DIGESTS: dict[Path, str] = {
    TARGET: "d7d586dafc640338545c88ddc57156cc8783776e349445a2501c8ee863cd759e",
    DRAFT: "48d2d06d8abf45e3ba714300c3207600b9fc80ddccb8992b555adcd2b242b630",
    HEADS: "d12dc952661fdc13896599c5bc28415f19904592cdb28b7b7ae80f70b15d860a",
}
