"""Trains an encoder of few layers, with heads of facts, to say what a longer one with its heads says.

The short encoder begins as some layers of the long one, whose words and places it keeps as they are, and the heads as
those of the long one. It learns the states that the long one gives in int8, and both learn what the heads of facts say
of them. Products are computed in bfloat16, weights are kept and averaged in float32. Texts, names and their order come
from one seed; a run continues from its checkpoint.
"""

import copy
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from htfi import models
from htfi.adapters.onnx.sentence_encoder import load_encoder
from htfi.adapters.onnx.session import WeightArray
from htfi.decoding.checkpoint.folder import CONFIG, TOKENIZER, Architecture, parse_architecture
from htfi.decoding.checkpoint.weights import write_safetensors
from htfi.domain.errors import InvalidInput
from htfi.domain.files import write_atomically
from htfi.narrative.facts.network import LABELS, TOKEN_LABELS, FactHeads
from htfi.wiring.sentence_encoder import SentenceEncoder
from htfi_train.facts.lines import FactLine, NamePool, read_lines, with_names
from htfi_train.facts.passages import passages_of
from htfi_train.facts.targets import IGNORED, fact_targets
from htfi_train.simulation.head_training import SEED, read_corpora
from htfi_train.simulation.labelled_lines import draw_lines
from htfi_train.torch.bert import BertEncoder
from htfi_train.torch.epochs import Continued, draw_average, resume_epoch, save_epoch
from htfi_train.torch.temperatures import likeliest_temperature

CHECKPOINT = "short-checkpoint.pt"
_HEADS_WEIGHT = 0.15  # of what heads say, beside the states; a text has five heads
_TOKEN_HEADS_WEIGHT = 0.3  # the same of the two heads of a token
_NO_PARTY_WEIGHT = 0.2  # of a token that is surely of no party, which most are, beside one that surely is
_HEADS_RATE = 0.5  # of the heads' learning, over that of the layers
_WARM_UP = 0.04  # of the steps
_MIN_RATE = 0.01  # of the rate, at the last step
_SAID_EVERY = 100
_LINES_PER_TEMPLATE = 2
_NAME_SHARE = 0.7  # of names that are replaced in headlines


@dataclass(frozen=True, slots=True)
class ShorteningConfig:
    """`layers` of the long encoder, from 0, are what the short one begins as. The rate is AdamW's."""

    layers: tuple[int, ...]
    epochs: int = 8
    batch: int = 32
    rate: float = 4e-4
    average: float = 0.998  # of the averaged weights that a step keeps; the averaged ones are shipped
    seed: int = 1
    threads: int = 1


def written_weights(
    shape: Architecture, arrays: Mapping[str, WeightArray], layers: Sequence[int]
) -> dict[str, NDArray[np.float32]]:
    """The weights of an encoder written in int8 as floats, by the names of a model folder, with `layers` alone. Places
    are added to the first type there, so that types are zero. Raises: InvalidInput, for another graph.
    """

    def product(name: str, factors: NDArray[np.float32] | None) -> NDArray[np.float32]:
        weight = arrays[f"{name}:int8"].T.astype(np.float32) * arrays[f"{name}:scale"][:, None]
        return weight if factors is None else weight * factors[None, :]

    try:
        words = "embeddings.word_embeddings.weight"
        table = arrays[f"{words}:words"].astype(np.float32) * arrays[f"{words}:scales"]
        found = {words: table, "embeddings.position_embeddings.weight": np.array(arrays["places"])}
        found["embeddings.token_type_embeddings.weight"] = np.zeros(
            (shape.num_token_types, shape.hidden_size), np.float32
        )
        norms = ["embeddings.LayerNorm"]
        for place, layer in enumerate(layers):
            old, new = f"encoder.layer.{layer}.", f"encoder.layer.{place}."
            norms += [f"{old}attention.output.LayerNorm", f"{old}output.LayerNorm"]
            joined = f"{old}attention.self.query.weight"
            weights = np.split(product(joined, arrays[f"{joined}:inverse"]), 3)
            biases = np.split(arrays[f"{joined}:bias"], 3)
            for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
                found |= {
                    f"{new}attention.self.{name}.weight": weight,
                    f"{new}attention.self.{name}.bias": bias,
                }
            for name in ("attention.output.dense", "intermediate.dense", "output.dense"):
                weight = f"{old}{name}.weight"
                found |= {
                    f"{new}{name}.weight": product(weight, arrays.get(f"{weight}:inverse")),
                    f"{new}{name}.bias": arrays[f"{weight}:bias"],
                }
            for name in ("attention.output.LayerNorm", "output.LayerNorm"):
                for end in ("weight", "bias"):
                    found[f"{new}{name}.{end}"] = arrays[f"{old}{name}.{end}:copy"]
        for end in ("weight", "bias"):
            found[f"embeddings.LayerNorm.{end}"] = arrays[f"embeddings.LayerNorm.{end}:copy"]
    except KeyError as error:
        raise InvalidInput(
            f"the graph holds no {error}: name an encoder that `htfi models facts` packed"
        ) from error
    return {name: np.array(value, np.float32) for name, value in found.items()}


@dataclass(frozen=True, slots=True)
class StateGap:
    """How far the short encoder is from the long one: `states` the mean squared difference over the variance of the
    long one's states, `cosine` of the means of texts; and by head the share of texts or tokens with the same label.
    """

    states: float
    cosine: float
    same: Mapping[str, float]


class _Heads(nn.Module):
    """The heads of facts: logits by head, as `FactHeads` reads them."""

    def __init__(self, heads: FactHeads, *, learn: bool) -> None:
        super().__init__()

        def held(value: NDArray[np.float32]) -> nn.Parameter:
            return nn.Parameter(torch.as_tensor(np.array(value)), requires_grad=learn)

        self._attention = held(heads.attention)
        self._weights = nn.ParameterDict({name: held(value) for name, value in heads.weights.items()})
        self._biases = nn.ParameterDict({name: held(value) for name, value in heads.biases.items()})

    def written(self, of: FactHeads) -> FactHeads:
        """As they ship; what does not learn is that `of` the heads that they began as."""
        return replace(
            of,
            encoder="",
            attention=self._attention.detach().numpy(),
            weights={name: value.detach().numpy() for name, value in self._weights.items()},
            biases={name: value.detach().numpy() for name, value in self._biases.items()},
        )

    def forward(self, states: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Of states [B, T, H]: [B, labels] of texts, [tokens, labels] of tokens."""
        shares = (states @ self._attention).masked_fill(~mask, -1e9).softmax(dim=1)
        pooled = torch.cat([_mean(states, mask), (shares[..., None] * states).sum(dim=1)], dim=-1)
        found = {name: pooled @ self._weights[name] + self._biases[name] for name in LABELS}
        of_tokens = states[mask]
        return found | {name: of_tokens @ self._weights[name] + self._biases[name] for name in TOKEN_LABELS}


class EncoderShortener:
    """One training in a folder: `train` until the epochs are over, then `weights`."""

    def __init__(
        self,
        long: SentenceEncoder,
        long_heads: FactHeads,
        shape: Architecture,
        weights: Mapping[str, NDArray[np.float32]],
        heads: FactHeads,
        config: ShorteningConfig,
        out: Path,
        say: Callable[[str], None],
    ) -> None:
        """`shape`, `weights` and `heads` are those that the short encoder begins with."""
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)  # pyright: ignore[reportUnknownMemberType]
        self._long, self._config, self._out, self._say = long, config, out, say
        self.net = BertEncoder(replace(shape, num_layers=len(config.layers)), dropout=0.0)
        for stored, value in self.net.stored().items():
            value.copy_(torch.as_tensor(weights[stored]))
        for part in (self.net.words, self.net.places, self.net.types, self.net.norm):
            part.requires_grad_(False)
        self._long_heads, self._given_heads = _Heads(long_heads, learn=False), heads
        self.heads = _Heads(heads, learn=True)
        self.averaged, self.averaged_heads = copy.deepcopy(self.net), copy.deepcopy(self.heads)

    def train(self, texts_of: Callable[[int], Sequence[str]], held: Sequence[str]) -> None:
        """Every epoch that is left, each saved when it ends. `texts_of` gives the texts of an epoch, as many in each;
        `held` are texts to judge by.
        """
        config = self._config
        steps_each = math.ceil(len(texts_of(0)) / config.batch)
        total = steps_each * config.epochs
        learning = [
            {"params": [one for one in self.net.parameters() if one.requires_grad], "lr": config.rate},
            {"params": list(self.heads.parameters()), "lr": _HEADS_RATE * config.rate},
        ]
        optimizer = torch.optim.AdamW(learning, weight_decay=0.01, betas=(0.9, 0.98))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer,
            lambda step: min(1.0, (step + 1) / (_WARM_UP * total)) * max(_MIN_RATE, 1.0 - step / total),
        )
        parts = self._parts(optimizer, schedule)
        for epoch in range(self._resume(parts), config.epochs):
            began = time.monotonic()
            rng = random.Random(f"{config.seed}/{epoch}")
            loss = self._epoch(texts_of(epoch), rng, optimizer, schedule)
            save_epoch(self._out / CHECKPOINT, parts, epoch + 1)
            gap = self.judge(held)
            same = ", ".join(f"{name} {value:.3f}" for name, value in gap.same.items())
            self._say(
                f"epoch {epoch + 1} of {config.epochs}: loss {loss:.4f}, {time.monotonic() - began:.0f} s; on texts "
                f"held back: states {gap.states:.4f}, cosine {gap.cosine:.4f}, same label: {same}"
            )

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The averaged weights, by the names of a model folder."""
        return {name: value.detach().numpy() for name, value in self.averaged.stored().items()}

    def fact_heads(self, held: Sequence[FactLine]) -> FactHeads:
        """The averaged heads, with the temperature of each under which these lines are likeliest, and what share of
        them it has right.
        """
        heads = self.averaged_heads.written(self._given_heads)
        asked = self._asked(held)
        warmths = {name: likeliest_temperature(*of_head) for name, of_head in asked.items()}
        right: dict[str, float] = {}
        for name, (logits, targets) in asked.items():
            is_told = (
                targets != len(TOKEN_LABELS["roles"]) - 1 if name == "roles" else torch.ones_like(targets) > 0
            )
            right[f"held_out_{name}"] = round(
                float((logits.argmax(-1) == targets)[is_told].float().mean()), 3
            )
        card = {**heads.card, **right, "layers": len(self._config.layers)}
        return replace(heads, temperatures=warmths, card=card)

    def _asked(self, lines: Sequence[FactLine]) -> dict[str, tuple[Tensor, Tensor]]:
        """By head the logits [n, labels] of lines and the places of their labels [n], where these are known."""
        self.averaged.eval()
        logits: dict[str, list[Tensor]] = {}
        targets: dict[str, list[int]] = {}
        for line in lines:
            text, spans = with_names(line, lambda name, _: name)
            ids = torch.tensor([self._long.tokens(text)])
            places = [(start, end) for start, end in self._long.spans(text).tolist()]
            known = fact_targets(line, spans, places)
            with torch.no_grad():
                of_line = self.averaged_heads(self.averaged(ids, ids != 0), ids != 0)
            for name, asked in of_line.items():
                logits.setdefault(name, []).append(asked)
                of_text = known.of_text.get(name)
                of_tokens = known.roles if name == "roles" else known.effects
                targets.setdefault(name, []).extend(of_tokens if of_text is None else [of_text])
        found: dict[str, tuple[Tensor, Tensor]] = {}
        for name, parts in logits.items():
            wanted = torch.tensor(targets[name])
            is_known = wanted != IGNORED
            found[name] = torch.cat(parts)[is_known], wanted[is_known]
        return found

    def judge(self, texts: Sequence[str]) -> StateGap:
        """How far the averaged encoder is from the long one on these texts."""
        self.averaged.eval()
        gaps: list[tuple[float, int]] = []
        cosines: list[Tensor] = []
        same: dict[str, list[Tensor]] = {}
        with torch.no_grad():
            for batch in self._batches(texts, random.Random(0)):
                ids, mask, wanted = batch
                found = self.averaged(ids, mask)
                gaps.append((float(_gap(found[mask], wanted[mask])), int(mask.sum())))
                cosines.append(nn.functional.cosine_similarity(_mean(found, mask), _mean(wanted, mask)))
                asked, told = self._long_heads(wanted, mask), self.averaged_heads(found, mask)
                for name, logits in asked.items():
                    same.setdefault(name, []).append(logits.argmax(-1) == told[name].argmax(-1))
        return StateGap(
            sum(gap * num for gap, num in gaps) / sum(num for _, num in gaps),
            float(torch.cat(cosines).mean()),
            {name: float(torch.cat(parts).float().mean()) for name, parts in same.items()},
        )

    def _epoch(
        self, texts: Sequence[str], rng: random.Random, optimizer: torch.optim.Optimizer, schedule: Any
    ) -> float:
        self.net.train()
        total, place = 0.0, 1
        batches = self._batches(texts, rng)
        for place, (ids, mask, wanted) in enumerate(batches, 1):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                found = self.net(ids, mask)
            loss = self._loss(found.float(), mask, wanted)
            optimizer.zero_grad()
            loss.backward()  # pyright: ignore[reportUnknownMemberType]
            nn.utils.clip_grad_norm_([*self.net.parameters(), *self.heads.parameters()], 1.0)
            optimizer.step()
            schedule.step()
            draw_average(self.averaged, self.net, self._config.average)
            draw_average(self.averaged_heads, self.heads, self._config.average)
            total += loss.item()
            if place % _SAID_EVERY == 0:
                self._say(f"  step {place}: loss {total / place:.4f}")
        return total / place

    def _loss(self, found: Tensor, mask: Tensor, wanted: Tensor) -> Tensor:
        loss = _gap(found[mask], wanted[mask])
        with torch.no_grad():
            asked = self._long_heads(wanted, mask)
            party = 1.0 - asked["roles"].softmax(-1)[:, -1]
            weights = _NO_PARTY_WEIGHT + (1.0 - _NO_PARTY_WEIGHT) * party
        for name, logits in self.heads(found, mask).items():
            gaps = nn.functional.kl_div(
                logits.log_softmax(-1), asked[name].softmax(-1), reduction="none"
            ).sum(-1)
            if name in TOKEN_LABELS:
                loss = loss + _TOKEN_HEADS_WEIGHT * (weights * gaps).sum() / weights.sum()
            else:
                loss = loss + _HEADS_WEIGHT * gaps.mean()
        return loss

    def _batches(self, texts: Sequence[str], rng: random.Random) -> "Any":
        """Ids and mask [B, T] of texts of like length, and the states [B, T, H] that the long encoder gives."""
        lengths = [len(self._long.tokens(text)) for text in texts]
        order = sorted(range(len(texts)), key=lambda place: lengths[place] + 4.0 * rng.random())
        size = self._config.batch
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        rng.shuffle(parts)
        for part in parts:
            chosen = [texts[place] for place in part]
            states = self._long.read(chosen).states
            longest = max(map(len, states))
            ids = np.zeros((len(part), longest), np.int64)
            wanted = np.zeros((len(part), longest, self._long.size), np.float32)
            for row, (text, of_text) in enumerate(zip(chosen, states, strict=True)):
                ids[row, : len(of_text)] = self._long.tokens(text)
                wanted[row, : len(of_text)] = of_text
            known = torch.as_tensor(ids)
            yield known, known != 0, torch.as_tensor(wanted)

    def _parts(self, optimizer: torch.optim.Optimizer, schedule: Any) -> dict[str, Continued]:
        nets = {"net": self.net, "averaged": self.averaged, "heads": self.heads}
        return {**nets, "averaged_heads": self.averaged_heads, "optimizer": optimizer, "schedule": schedule}

    def _resume(self, parts: Mapping[str, Continued]) -> int:
        """How many epochs an earlier run in this folder has done; 0 where there is none."""
        file = self._out / CHECKPOINT
        state = resume_epoch(file, parts)
        if state is None:
            return 0
        self._say(f"continuing after epoch {state['epoch']} of {file}")
        return int(state["epoch"])


def shorten(
    long: SentenceEncoder,
    folder: Path,
    begin: Path,
    corpora: Path,
    config: ShorteningConfig,
    out: Path,
    say: Callable[[str], None],
) -> tuple[Path, FactHeads]:
    """Train on the texts of the corpora; the short encoder as a model folder, and the heads of facts on it.

    `long` was packed in `folder` with its heads. The short one begins as layers of the encoder and as the heads that
    are packed in `begin`. Raises: InvalidInput, for corpora without lines, or layers that the encoder does not have.
    """
    described = (begin / CONFIG).read_bytes()
    shape = parse_architecture(described, str(begin / CONFIG))
    if max(config.layers) >= shape.num_layers:
        raise InvalidInput(f"the encoder has layers 0 to {shape.num_layers - 1}: name some of these")
    lines = read_lines(corpora / "facts")
    held = [line for line in lines if line.is_held_back]
    kept = [line for line in lines if not line.is_held_back]
    names = NamePool(kept)
    drawn = [
        line.text
        for corpus in read_corpora(corpora)
        for line in draw_lines(corpus.templates, corpus.slots, _LINES_PER_TEMPLATE, SEED)
    ]

    def texts_of(epoch: int) -> list[str]:
        """Every other line as a headline, in turn, and the rest as passages."""
        rng = random.Random(f"{config.seed}/texts/{epoch}")
        headlines = [names.variant(line, rng, _NAME_SHARE)[0] for line in kept[epoch % 2 :: 2]]
        return headlines + passages_of(kept[(epoch + 1) % 2 :: 2], names, drawn, rng)

    arrays = load_encoder(begin / models.ENCODER_GRAPH).computed
    weights = written_weights(shape, arrays, config.layers)
    heads = FactHeads.load(begin)
    shortener = EncoderShortener(long, FactHeads.load(folder), shape, weights, heads, config, out, say)
    shortener.train(texts_of, [line.text for line in held])
    short = out / "encoder"
    short.mkdir(parents=True, exist_ok=True)
    write_safetensors(short / "model.safetensors", shortener.weights())
    settings = msgspec.json.decode(described, type=dict[str, object])
    settings["num_hidden_layers"] = len(config.layers)
    written = msgspec.json.format(msgspec.json.encode(settings), indent=2) + b"\n"
    write_atomically(short / CONFIG, written, private=False)
    write_atomically(short / TOKENIZER, (folder / TOKENIZER).read_bytes(), private=False)
    return short, shortener.fact_heads(held)


def _gap(found: Tensor, wanted: Tensor) -> Tensor:
    """The mean squared difference of states [tokens, H] over the variance of those that are wanted."""
    spread = wanted.var(dim=0, unbiased=False).mean()
    return (found - wanted).square().mean() / spread


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean of the states [B, T, H] over the tokens."""
    weights = mask[..., None].float()
    return (states * weights).sum(dim=1) / weights.sum(dim=1)
