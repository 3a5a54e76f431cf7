"""The worked example of docs/speculative-decoding.md is what the code does."""

from pathlib import Path

import numpy as np

from gumbel_noise import gumbel
from htfi.decoding.noise import noise_key

PAGE = Path(__file__).parents[2] / "docs" / "speculative-decoding.md"
TOKENS = ("up", "flat", "down", "end")
DRAFT, TARGET = np.log([0.50, 0.30, 0.15, 0.05]), np.log([0.35, 0.35, 0.20, 0.10])
SEED = 49


def shown(values: np.ndarray) -> str:
    return " ".join(f"{value:+.2f}" for value in values).replace("-", "−")


def test_the_table_of_the_page_is_the_noise_and_what_it_chooses():
    page = PAGE.read_text(encoding="utf-8")
    for place in range(4):
        noise = gumbel(np.array([noise_key(SEED, 0, place)], np.uint64), np.arange(4))[0]
        draft, target = DRAFT + noise, TARGET + noise
        drafted, said = TOKENS[int(draft.argmax())], TOKENS[int(target.argmax())]
        if place == 2:
            assert (drafted, said) == ("up", "down")
            assert TOKENS[int(np.argsort(-draft)[1])] == said  # the sibling that the tree holds
            drafted, said = f"**{drafted}**", f"**{said}**"
        else:
            assert drafted == said
        assert f"| {place} | {shown(noise)} | {shown(draft)} | {drafted} | {shown(target)} | {said} |" in page
