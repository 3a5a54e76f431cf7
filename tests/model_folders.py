"""Model folders with random weights, as transformers writes them: what engines are tested on."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

CAUSAL = {"llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM"}


def causal_model(config: dict[str, Any], seed: int) -> Any:
    """A transformers network in eager float32, with every weight, bias and norm drawn from the seed.

    Scaled so that values keep about unit size from layer to layer, and logits too.
    """
    kind = config["model_type"]
    settings = transformers.AutoConfig.for_model(**config)
    settings._attn_implementation = "eager"
    model = getattr(transformers, CAUSAL[kind])(settings).eval()
    _draw(model, seed)
    return model


def bert_model(config: dict[str, Any], seed: int) -> Any:
    settings = transformers.BertConfig(**config)
    settings._attn_implementation = "eager"
    model = transformers.BertModel(settings, add_pooling_layer=False).eval()
    _draw(model, seed)
    return model


def save(model: Any, folder: Path, **options: Any) -> Path:
    model.save_pretrained(folder, **options)
    return folder


def _draw(model: Any, seed: int) -> None:
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            drawn = torch.randn(weight.shape, generator=noise)
            if name.endswith("bias"):
                weight.copy_(drawn * 0.1)
            elif weight.ndim == 1:  # a norm
                weight.copy_(1 + drawn * 0.1)
            else:
                weight.copy_(drawn * weight.shape[1] ** -0.5)
