"""Small fakes for decoding's ports: a real transformer in numpy, and tokenizers with and without marks."""

import hashlib
from collections.abc import Sequence

import numpy as np

from htfi.decoding.ports import Floats, ForwardOutput, Ids, NetworkShape


class TinyNetwork:
    """Two layers of causal attention (4 heads over 2 key-value heads) and a tanh layer, weights from a seed.

    Logits depend on every past key and on positions, so that a mistake with either shows.
    """

    def __init__(
        self, vocab_size: int, seed: int = 0, max_positions: int = 512, sharpness: float = 3.0
    ) -> None:
        rng = np.random.Generator(np.random.PCG64(seed))
        self.shape = NetworkShape(2, 2, 8, vocab_size, max_positions)
        self.digest = hashlib.sha256(f"tiny {vocab_size} {seed}".encode()).hexdigest()
        self.num_passes, self.num_positions = 0, 0

        def weights(*sizes: int) -> Floats:
            return (rng.standard_normal(sizes) / np.sqrt(sizes[-2])).astype(np.float32)

        width = 32
        self._tokens = rng.standard_normal((vocab_size, width)).astype(np.float32)
        self._places = rng.standard_normal((max_positions, width)).astype(np.float32)
        self._layers = [
            (
                weights(width, 32),
                weights(width, 16),
                weights(width, 16),
                weights(32, width),
                weights(width, width),
            )
            for _ in range(2)
        ]
        self._head = weights(width, vocab_size) * np.float32(sharpness)

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        num_rows, num_new = ids.shape
        assert positions.shape == ids.shape
        assert mask.shape == (num_rows, num_new, keys.shape[3] + num_new)
        assert keys.shape == values.shape
        assert keys.shape[:3] == (2, num_rows, 2)
        for array in (mask, keys, values):
            assert array.dtype == np.float32
            assert array.flags.c_contiguous
        self.num_passes += 1
        self.num_positions += ids.size
        x = self._tokens[ids] + self._places[positions]
        new_keys, new_values = [], []
        for layer, (query, key, value, out, up) in enumerate(self._layers):
            h = x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-5)
            q = (h @ query).reshape(num_rows, num_new, 2, 2, 8)  # [B, T, G, heads each, D]
            new_keys.append((h @ key).reshape(num_rows, num_new, 2, 8).transpose(0, 2, 1, 3))
            new_values.append((h @ value).reshape(num_rows, num_new, 2, 8).transpose(0, 2, 1, 3))
            all_keys = np.concatenate([keys[layer], new_keys[-1]], axis=2)  # [B, G, S + T, D]
            all_values = np.concatenate([values[layer], new_values[-1]], axis=2)
            scores = np.einsum("btghd,bgsd->btghs", q, all_keys) + mask[:, :, None, None, :]
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            mixed = np.einsum("btghs,bgsd->btghd", scores, all_values).reshape(num_rows, num_new, 32)
            x = x + mixed @ out
            x = x + np.tanh(x @ up)
        return ForwardOutput(x @ self._head, np.stack(new_keys), np.stack(new_values))


_PLAIN = [
    *"abcdefghijklmnopqrstuvwxyz .,-+%:[]()<>/|{}ABCDEFG",
    *"0123456789",
    " up", " down", " rose", " fell", " the", " rose sharply", "½", "٣", "二",
    "\n", "\t", ".\n", "\x85", "\u202e", "\ufffd",
]  # fmt: skip
MARKS = ["s", "/s", "news", "/news", "asset", "prices", "view", "/view", "end", "path", "h1", "h2", "h3"]
MARKS += ["up", "flat", "down", "size", "symbol"]


class TinyTokenizer:
    """Longest match over a few dozen pieces; with `marks`, control tokens and 9 price tokens after them."""

    digest = "0" * 64

    def __init__(self, marks: bool = True) -> None:
        names = [*MARKS, *(f"p{i}" for i in range(9))] if marks else []
        self._pieces: list[str] = list(_PLAIN)
        self._specials = {f"<{name}>": len(_PLAIN) + i for i, name in enumerate(names)}
        self._longest_first = sorted(range(len(_PLAIN)), key=lambda i: -len(_PLAIN[i]))

    @property
    def vocab_size(self) -> int:
        return len(self._pieces) + len(self._specials)

    def encode(self, text: str) -> list[int]:
        ids, at = [], 0
        while at < len(text):
            for token in self._longest_first:
                if text.startswith(self._pieces[token], at):
                    ids.append(token)
                    at += len(self._pieces[token])
                    break
            else:
                raise AssertionError(f"no piece for {text[at]!r}")
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.piece(int(token)) or "" for token in ids)

    def special(self, token: str) -> int | None:
        return self._specials.get(token)

    def piece(self, token_id: int) -> str | None:
        return self._pieces[token_id] if token_id < len(self._pieces) else None
