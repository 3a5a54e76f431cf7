"""Tunes a sentence encoder with heads for facts on labelled lines, several tasks at once; calibrates and exports it.

The mean of the states can be held near that of the encoder it began from, so that distances between texts keep their
meaning. Products are computed in bfloat16, weights are kept and averaged in float32. Dropout, shuffles and
replaced names come from one seed; a run continues from its checkpoint.
"""

import copy
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.checkpoint.weights import write_safetensors
from htfi.domain.errors import InvalidInput
from htfi.domain.files import write_atomically
from htfi.narrative.config import MAX_TOKENS
from htfi.narrative.facts.network import LABELS, TOKEN_LABELS, FactHeads
from htfi_train.facts.lines import SIDES, FactLine, NamePool, PartySpan
from htfi_train.facts.targets import IGNORED, FactTargets, fact_targets
from htfi_train.torch.bert import BertEncoder
from htfi_train.torch.epochs import Continued, draw_average, resume_epoch, save_epoch
from htfi_train.torch.temperatures import likeliest_temperature

CHECKPOINT = "facts-checkpoint.pt"
_SMOOTHING = 0.05
_NO_PARTY_WEIGHT = 0.35  # of tokens of no party, which are most
_KIND_POWER = 0.35  # rare kinds count more, by this power of how rare
# What each task counts in the sum of the losses.
TASK_WEIGHTS: Mapping[str, float] = {
    "tone": 1.0, "axis": 0.5, "event": 0.5, "modality": 0.3, "tense": 0.3, "roles": 1.5, "effects": 0.8,
}  # fmt: skip
_TONE_LINES_WEIGHT = 0.4  # of lines of which the tone alone is known


@dataclass(frozen=True, slots=True)
class FactTrainingConfig:
    """How the network is tuned. Rates are AdamW's, with a linear decay after a warm-up of 6% of the steps."""

    epochs: int = 5
    batch: int = 32
    encoder_rate: float = 6e-5
    head_rate: float = 1e-3
    name_share: float = 0.5  # of names that are replaced
    average: float = (
        0.998  # of the averaged weights that a step keeps; the averaged ones are judged and shipped
    )
    hold_points: float = 5.0  # weight of the distance of a text's mean from that of the first encoder
    seed: int = 1
    threads: int = 1


@dataclass(frozen=True, slots=True)
class _Example:
    """Ids of a text, and what heads should say of it."""

    ids: list[int]
    targets: FactTargets


class FactNet(nn.Module):
    """The encoder with its heads, as `narrative.facts.network.FactHeads` reads them."""

    def __init__(self, encoder: BertEncoder, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.attention = nn.Linear(width, 1, bias=False)
        self.drop = nn.Dropout(0.1)
        self._text = {name: nn.Linear(2 * width, len(labels)) for name, labels in LABELS.items()}
        self._token = {name: nn.Linear(width, len(labels)) for name, labels in TOKEN_LABELS.items()}
        self.all_heads = nn.ModuleDict(self.heads())

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Logits by head: [B, labels] of a text, [B, T, labels] of its tokens; and the mean states [B, H]."""
        states = self.encoder(ids, mask)
        mean = _mean(states, mask)
        dropped = self.drop(states)
        weights = self.attention(dropped).masked_fill(~mask[..., None], -1e9).softmax(dim=1)
        pooled = torch.cat([_mean(dropped, mask), (weights * dropped).sum(dim=1)], dim=-1)
        logits: dict[str, Tensor] = {name: head(pooled) for name, head in self._text.items()}
        return logits | {name: head(dropped) for name, head in self._token.items()}, mean

    def heads(self) -> dict[str, nn.Linear]:
        """Those of the text and those of its tokens, by name."""
        return {**self._text, **self._token}


class FactTrainer:
    """One training run in a folder: `train` until the epochs are over, then `finish`."""

    def __init__(
        self,
        base: ModelFolder,
        lines: Sequence[FactLine],
        tones: Sequence[tuple[str, str]],
        config: FactTrainingConfig,
        out: Path,
        say: Callable[[str], None],
    ) -> None:
        """`tones` are further texts with their tone, one of `SIDES`. Raises: InvalidInput."""
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)  # pyright: ignore[reportUnknownMemberType]
        self._config, self._out, self._say = config, out, say
        self._base, self._tokenizer = base, HuggingFaceTokenizer(base.tokenizer_file)
        self._held = [line for line in lines if line.is_held_back]
        self._lines = [line for line in lines if not line.is_held_back]
        if not self._held or not self._lines:
            raise InvalidInput("too few lines: none is left on one side of the split")
        self._names = NamePool(self._lines)
        self._tones = [self._tone_example(text, tone) for text, tone in tones]
        self._first = BertEncoder(base.architecture)
        self._first.load(base.weights)
        self._first.eval()
        encoder = BertEncoder(base.architecture)
        encoder.load(base.weights)
        self.net = FactNet(encoder, base.architecture.hidden_size)
        self.averaged = copy.deepcopy(self.net)
        counts = np.bincount([self._kind(line) for line in self._lines], minlength=len(LABELS["event"]))
        self._kind_weights = torch.tensor(
            (counts.mean() / np.maximum(counts, 1)) ** _KIND_POWER, dtype=torch.float32
        )
        self._role_weights = torch.ones(len(TOKEN_LABELS["roles"]))
        self._role_weights[-1] = _NO_PARTY_WEIGHT

    def train(self) -> None:
        """Every epoch that is left, each saved when it ends."""
        config = self._config
        steps_each = math.ceil(len(self._lines) / config.batch) + math.ceil(len(self._tones) / config.batch)
        total = steps_each * config.epochs
        groups = [
            {"params": list(self.net.encoder.parameters()), "lr": config.encoder_rate},
            {
                "params": [
                    one for name, one in self.net.named_parameters() if not name.startswith("encoder.")
                ],
                "lr": config.head_rate,
            },
        ]
        optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (step + 1) / (0.06 * total)) * max(0.02, 1.0 - step / total)
        )
        parts = self._parts(optimizer, schedule)
        done = self._resume(parts)
        for epoch in range(done, config.epochs):
            began = time.monotonic()
            loss = self._epoch(random.Random(f"{config.seed}/{epoch}"), optimizer, schedule)
            save_epoch(self._out / CHECKPOINT, parts, epoch + 1, torch_rng=torch.get_rng_state())
            scores = ", ".join(f"{name} {value:.3f}" for name, value in self.judge().items())
            self._say(
                f"epoch {epoch + 1} of {config.epochs}: loss {loss:.3f}, {time.monotonic() - began:.0f} s; "
                f"right on held-out lines: {scores}"
            )

    def average_with(self, folder: Path, share: float) -> None:
        """Make the weights the mean of these and of another training's, which count `share` (0–1).

        Raises: InvalidInput, where the folder holds no training of this form.
        """
        file = folder / CHECKPOINT
        try:
            other = torch.load(file, weights_only=True)["averaged"]
            own = self.averaged.state_dict()
            self.averaged.load_state_dict(
                {name: (1.0 - share) * value + share * other[name] for name, value in own.items()}
            )
        except (OSError, KeyError, RuntimeError) as error:
            raise InvalidInput(
                f"{file} is no training to take the mean with: name a folder that `htfi models facts` wrote"
            ) from error

    def judge(self) -> dict[str, float]:
        """The share of held-out lines, or of their tokens, that each head has right."""
        right: dict[str, list[bool]] = {}
        for name, logits, targets in self._held_logits():
            known = targets != IGNORED
            if name == "roles":
                known &= targets != len(TOKEN_LABELS["roles"]) - 1
            right.setdefault(name, []).extend(map(bool, (logits.argmax(-1) == targets)[known]))
        return {name: float(np.mean(found)) for name, found in right.items()}

    def finish(self, card: Mapping[str, str | float | int]) -> FactHeads:
        """The heads with a temperature each, and the tuned encoder as a model folder `encoder` in the output."""
        folder = self._out / "encoder"
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: _array(value) for name, value in self.averaged.encoder.stored().items()}
        write_safetensors(folder / "model.safetensors", weights)
        for name in ("config.json", "tokenizer.json"):
            write_atomically(folder / name, (self._base.path / name).read_bytes(), private=False)
        heads = self.averaged.heads()
        scores = {f"held_out_{name}": round(value, 3) for name, value in self.judge().items()}
        return FactHeads(
            encoder="",
            attention=_array(self.averaged.attention.weight)[0],
            weights={name: _array(head.weight).T for name, head in heads.items()},
            biases={name: _array(head.bias) for name, head in heads.items()},
            temperatures=self._temperatures(),
            card={**card, **scores, "lines": len(self._lines), "held_out_lines": len(self._held)},
        )

    # --- steps

    def _epoch(self, rng: random.Random, optimizer: torch.optim.Optimizer, schedule: Any) -> float:
        self.net.train()
        examples = [
            self._example(line, *self._names.variant(line, rng, self._config.name_share))
            for line in self._lines
        ]
        work = [(True, batch) for batch in _batches(examples, self._config.batch, rng)]
        work += [(False, batch) for batch in _batches(self._tones, self._config.batch, rng)]
        rng.shuffle(work)
        total = 0.0
        for place, (is_whole, batch) in enumerate(work, 1):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = self._loss(batch) if is_whole else _TONE_LINES_WEIGHT * self._loss(batch)
            optimizer.zero_grad()
            loss.backward()  # pyright: ignore[reportUnknownMemberType]
            nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            draw_average(self.averaged, self.net, self._config.average)
            total += loss.item()
            if place % 100 == 0:
                self._say(f"  step {place} of {len(work)}: loss {total / place:.3f}")
        return total / max(len(work), 1)

    def _loss(self, batch: Sequence[_Example]) -> Tensor:
        ids = _padded([one.ids for one in batch], 0)
        mask = ids != 0
        logits, mean = self.net(ids, mask)
        loss = torch.zeros(())
        if self._config.hold_points > 0.0:
            with torch.no_grad():
                first = _mean(self._first(ids, mask), mask)
            loss = self._config.hold_points * (1.0 - nn.functional.cosine_similarity(mean, first)).mean()
        for name in LABELS:
            targets = torch.tensor([one.targets.of_text.get(name, IGNORED) for one in batch])
            if bool((targets != IGNORED).any()):
                weight = self._kind_weights if name == "event" else None
                loss = loss + TASK_WEIGHTS[name] * nn.functional.cross_entropy(
                    logits[name], targets, weight=weight, label_smoothing=_SMOOTHING, ignore_index=IGNORED
                )
        for name, rows in (
            ("roles", [one.targets.roles for one in batch]),
            ("effects", [one.targets.effects for one in batch]),
        ):
            targets = _padded(rows, IGNORED).flatten()
            if bool((targets != IGNORED).any()):
                weight = self._role_weights if name == "roles" else None
                loss = loss + TASK_WEIGHTS[name] * nn.functional.cross_entropy(
                    logits[name].flatten(0, 1), targets, weight=weight, ignore_index=IGNORED
                )
        return loss

    # --- examples

    def _example(self, line: FactLine, text: str, spans: Sequence[PartySpan]) -> _Example:
        ids, places = self._encoded(text)
        return _Example(ids, fact_targets(line, spans, places))

    def _tone_example(self, text: str, tone: str) -> _Example:
        ids, _ = self._encoded(text)
        unknown = [IGNORED] * len(ids)
        return _Example(ids, FactTargets({"tone": SIDES.index(tone)}, unknown, unknown))

    def _encoded(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        first, last = self._tokenizer.special("[CLS]"), self._tokenizer.special("[SEP]")
        if first is None or last is None:
            raise InvalidInput(
                f"{self._base.path}: the vocabulary has no [CLS] and [SEP]; name a BERT encoder"
            )
        inner, spans = self._tokenizer.encode_with_spans(text)
        of_words = [(start, end) for start, end in spans[: MAX_TOKENS - 2].tolist()]
        return [first, *inner[: MAX_TOKENS - 2], last], [(0, 0), *of_words, (0, 0)]

    @staticmethod
    def _kind(line: FactLine) -> int:
        return LABELS["event"].index(line.kind)

    # --- held-out lines

    def _held_logits(self) -> list[tuple[str, Tensor, Tensor]]:
        """By head and batch: logits [n, labels] and targets [n]."""
        self.averaged.eval()
        rng = random.Random(0)
        examples = [self._example(line, *self._names.variant(line, rng, 0.0)) for line in self._held]
        found: list[tuple[str, Tensor, Tensor]] = []
        with torch.no_grad():
            for batch in _batches(examples, 64, rng):
                ids = _padded([one.ids for one in batch], 0)
                logits, _ = self.averaged(ids, ids != 0)
                found += [
                    (name, logits[name], torch.tensor([one.targets.of_text[name] for one in batch]))
                    for name in LABELS
                ]
                wanted = [one.targets for one in batch]
                rows = {"roles": [one.roles for one in wanted], "effects": [one.effects for one in wanted]}
                found += [
                    (name, logits[name].flatten(0, 1), _padded(of_tokens, IGNORED).flatten())
                    for name, of_tokens in rows.items()
                ]
        return found

    def _temperatures(self) -> dict[str, float]:
        """The temperature of each head under which the held-out lines are likeliest."""
        by_head: dict[str, list[tuple[Tensor, Tensor]]] = {}
        for name, logits, targets in self._held_logits():
            known = targets != IGNORED
            by_head.setdefault(name, []).append((logits[known], targets[known]))
        found: dict[str, float] = {}
        for name, parts in by_head.items():
            logits, targets = (torch.cat(part) for part in zip(*parts, strict=True))
            found[name] = likeliest_temperature(logits, targets)
        return found

    # --- checkpoint

    def _parts(self, optimizer: torch.optim.Optimizer, schedule: Any) -> dict[str, Continued]:
        return {"net": self.net, "averaged": self.averaged, "optimizer": optimizer, "schedule": schedule}

    def _resume(self, parts: Mapping[str, Continued]) -> int:
        """How many epochs an earlier run in this folder has done; 0 where there is none."""
        file = self._out / CHECKPOINT
        state = resume_epoch(file, parts)
        if state is None:
            return 0
        torch.set_rng_state(state["torch_rng"])
        self._say(f"continuing after epoch {state['epoch']} of {file}")
        return int(state["epoch"])


def _array(value: Tensor) -> NDArray[np.float32]:
    return value.detach().numpy()


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean of the states [B, T, H] over the tokens."""
    weights = mask[..., None].float()
    return (states * weights).sum(dim=1) / weights.sum(dim=1)


def _padded(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows])


def _batches(examples: Sequence[_Example], size: int, rng: random.Random) -> list[list[_Example]]:
    """Batches of texts of like length, in a random order."""
    order = sorted(range(len(examples)), key=lambda place: len(examples[place].ids) + 4.0 * rng.random())
    found = [
        [examples[place] for place in order[start : start + size]] for start in range(0, len(order), size)
    ]
    rng.shuffle(found)
    return found
