"""A BERT encoder in torch, for tuning: the forward pass of `adapters.onnx.sentence_graph` with gradients."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from htfi.adapters.torch.llama import tensor
from htfi.decoding.checkpoint.folder import Architecture
from htfi.decoding.checkpoint.weights import CheckpointWeights


class BertEncoder(nn.Module):
    """States [B, T, H] of padded texts `ids` [B, T] with `mask` [B, T], True where a token stands."""

    def __init__(self, shape: Architecture, dropout: float = 0.1) -> None:
        super().__init__()
        width = shape.hidden_size
        self.words = nn.Embedding(shape.vocab_size, width)
        self.places = nn.Embedding(shape.max_positions, width)
        self.types = nn.Embedding(shape.num_token_types, width)
        self.norm = nn.LayerNorm(width, eps=shape.norm_eps)
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList(_Layer(shape, dropout) for _ in range(shape.num_layers))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        value = self.words(ids) + self.places(places) + self.types.weight[0]
        value = self.drop(self.norm(value))
        for layer in self.layers:
            value = layer(value, mask)
        return value

    def load(self, weights: CheckpointWeights) -> None:
        """Take the weights of a model folder. Raises: InvalidInput, ShapeMismatch."""
        state = self.state_dict()
        prefix = "bert." if "bert.embeddings.word_embeddings.weight" in weights else ""
        for name, stored in _stored_names(state).items():
            state[name].copy_(tensor(weights.array(prefix + stored, tuple(state[name].shape)).copy()))

    def stored(self) -> Mapping[str, Tensor]:
        """The weights by the names of a model folder."""
        state = self.state_dict()
        return {stored: state[name] for name, stored in _stored_names(state).items()}


class _Layer(nn.Module):
    """Attention and feed-forward, each normed after its residual."""

    def __init__(self, shape: Architecture, dropout: float) -> None:
        super().__init__()
        width, self._num_heads = shape.hidden_size, shape.num_heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.mix = nn.Linear(width, width)
        self.mix_norm = nn.LayerNorm(width, eps=shape.norm_eps)
        self.up = nn.Linear(width, shape.intermediate_size)
        self.down = nn.Linear(shape.intermediate_size, width)
        self.down_norm = nn.LayerNorm(width, eps=shape.norm_eps)
        self.drop = nn.Dropout(dropout)
        self._dropout = dropout

    def forward(self, value: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = value.shape

        def heads(of: Tensor) -> Tensor:
            return of.view(batch, length, self._num_heads, -1).transpose(1, 2)

        mixed = nn.functional.scaled_dot_product_attention(
            heads(self.query(value)),
            heads(self.key(value)),
            heads(self.value(value)),
            attn_mask=mask[:, None, None, :],
            dropout_p=self._dropout if self.training else 0.0,
        )
        mixed = self.mix(mixed.transpose(1, 2).reshape(batch, length, width))
        value = self.mix_norm(self.drop(mixed) + value)
        inner = self.down(nn.functional.gelu(self.up(value)))
        return self.down_norm(self.drop(inner) + value)


_PLAIN = {
    "words": "embeddings.word_embeddings",
    "places": "embeddings.position_embeddings",
    "types": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
_IN_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mix": "attention.output.dense",
    "mix_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "down_norm": "output.LayerNorm",
}


def _stored_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """The folder's name of each of our weights."""
    found: dict[str, str] = {}
    for name in state:
        parts = name.split(".")
        if parts[0] == "layers":
            found[name] = f"encoder.layer.{parts[1]}.{_IN_LAYER[parts[2]]}.{parts[3]}"
        else:
            found[name] = f"{_PLAIN[parts[0]]}.{parts[1]}"
    return found
