"""The models that ship: htfi-mini in two sizes, the encoder of news and its heads, each held to its digest."""

from pathlib import Path

TARGET = Path(__file__).parent / "mini-target"
DRAFT = Path(__file__).parent / "mini-draft"
# What ledgers of earlier versions were read with, for their replay.
EARLIER = tuple(Path(__file__).parent / "earlier" / name for name in ("mini-target", "mini-draft"))
HEADS = Path(__file__).parent / "heads"
FACTS = Path(__file__).parent / "facts"
FACTS_SOURCE = "htfi_facts"  # the encoder, tuned for facts
PASSAGES = Path(__file__).parent / "passages"
PASSAGES_SOURCE = (
    "htfi_passages"  # the same with three layers, for passages of bodies; its words are those of FACTS
)
ENCODER_GRAPH = "encoder.graph"

FACT_HEADS_DIGEST = "2b4bb30c8a7a1cc6dbb6434eed3e10910b4ee99930909f83b7bb7655e2b56c45"
# SHA-256 over configuration, weights and vocabulary: a changed byte is refused.
DIGESTS: dict[Path, str] = {
    TARGET: "5815f3c3b5a6709e17713a4a6a1b7311dea3364b38ad0057cd11c200ee545834",
    DRAFT: "1c2e4cac2f8aa8167ccc4f3234152f9148614da93bbf31d960ea96dd5f17e8a7",
    EARLIER[0]: "d7d586dafc640338545c88ddc57156cc8783776e349445a2501c8ee863cd759e",
    EARLIER[1]: "48d2d06d8abf45e3ba714300c3207600b9fc80ddccb8992b555adcd2b242b630",
    FACTS: "89255d522584208cf2d64fd3366f5098b0ab4476b362176a4ef3c0760927a4dc",
    PASSAGES: "5fb779a01b6984c7f6163307b382380b90251ab82a377f0693cb7160d76fcaa1",
    HEADS: "409f41ee84b9960b22db451a487810d5d45bb187e8c8033abce7b6412cea3487",
}
