"""The sentence encoder in C: int8 products at the processor's rate, floats with the bits of the general engine.

Texts of any length go through one behind the other, so that none is padded and none waits for others of its length.
Each product's sum is exact, and everything else is done row by row in a fixed order: a text's bits depend neither on
the texts beside it nor on the kind of processor.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from htfi.adapters.native.written_graph import read_numbers
from htfi.decoding.checkpoint.folder import Architecture, ModelFamily
from htfi.decoding.ports import Floats, Ids
from htfi.domain.errors import DependencyUnavailable, InvalidInput, ShapeMismatch

try:
    from htfi.adapters.native import encoder_core
except ImportError:  # the package was built without a C compiler
    encoder_core = None

BEST_LEVEL = 2  # of the processor's instructions: 2 AVX-512 with VNNI, 1 AVX2, 0 any
_MIN_LEVEL = 1  # below it the general engine is faster (docs/performance.md)
_LANES, _GROUP = 16, 64  # what sizes are multiples of

if TYPE_CHECKING:
    from htfi.adapters.native.encoder_core import Job

WrittenArrays = Mapping[str, NDArray[Any]]


def serves(architecture: Architecture) -> bool:
    """Whether the encoder in C was compiled, is the faster one on this processor, and takes these sizes."""
    if encoder_core is None or encoder_core.best_level() < _MIN_LEVEL:
        return False
    of = architecture
    return (
        of.family is ModelFamily.BERT
        and of.activation in ("gelu", "gelu_new")
        and of.head_dim % _LANES == 0
        and of.hidden_size == of.num_heads * of.head_dim
        and of.hidden_size % _GROUP == 0
        and of.intermediate_size % _GROUP == 0
    )


class Wait(IntEnum):
    """When somebody will wait for texts: at once, so that two threads share each; soon; later, after all others."""

    AT_ONCE = 0
    SOON = 1
    LATER = 2


class NativeSentenceEncoder:
    """A BERT encoder from a graph written in int8, with the arrays that it names."""

    def __init__(
        self,
        architecture: Architecture,
        content: bytes,
        arrays: WrittenArrays,
        digest: str,
        *,
        level: int = BEST_LEVEL,
    ) -> None:
        """`level` holds back the processor's newer instructions, as tests do.

        Raises: DependencyUnavailable, where nothing was compiled; InvalidInput, when the graph is of another kind.
        """
        if encoder_core is None:
            raise DependencyUnavailable(
                "the encoder in C was not compiled: install htfi again where there is a C compiler"
            )
        of = self._architecture = architecture
        self._digest = digest
        sizes = (
            of.num_layers, of.num_heads, of.head_dim, of.hidden_size, of.intermediate_size, of.vocab_size,
            of.max_positions,
        )  # fmt: skip
        numbers = read_numbers(content)
        nodes = numbers.nodes
        steps = {node.inputs[1]: node.inputs[2] for node in nodes if node.kind == "MatMulIntegerToFloat"}
        bounds = {node.inputs[1] for node in nodes if node.kind == "Max"}
        try:
            (least,) = bounds
            given = _arrays(of, arrays, {weight: numbers.number(step) for weight, step in steps.items()})
            self._core = encoder_core.Encoder(sizes, of.norm_eps, float(numbers.number(least)), given, level)
        except (KeyError, ValueError) as error:
            raise InvalidInput(f"the graph is none of an encoder in int8 ({error}): pack it again") from error

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the files that the encoder was opened from."""
        return self._digest

    @property
    def level(self) -> int:
        """Of the instructions that are used."""
        return self._core.level

    def read(
        self, texts: Sequence[Sequence[int]], threads: int = 1
    ) -> tuple[Floats, list[NDArray[np.float32]]]:
        """Points of length 1 [n, H] and states n × [T, H] of texts of ids.

        Raises: ShapeMismatch, for a text without ids; InvalidInput, for ids out of range or too many.
        """
        return self.start(texts, threads, Wait.AT_ONCE).part(slice(0, len(texts)))

    def start(
        self, texts: Sequence[Sequence[int]], threads: int = 1, wait: Wait = Wait.SOON
    ) -> "StartedTexts":
        """Texts of ids that up to `threads` read, the one that asks for them included. With one thread nothing is read
        until it is asked for.

        Raises: ShapeMismatch, for a text without ids; InvalidInput, for ids out of range or too many.
        """
        lengths = [len(text) for text in texts]
        ids: Ids = np.array([*chain.from_iterable(texts)], np.int64)
        states: Floats = np.empty((len(ids), self._architecture.hidden_size), np.float32)
        sums: Floats = np.empty((len(texts), self._architecture.hidden_size), np.float32)
        job = self._core.start(ids, np.array(lengths, np.int32), states, sums, threads, wait)
        if job is None:
            self._complain(ids, lengths)
        return StartedTexts(job, list(accumulate(lengths, initial=0)), states, sums)

    def rouse(self, threads: int) -> None:
        """Wake a thread of `threads` for texts that will come within half a millisecond."""
        if encoder_core is not None:
            encoder_core.rouse(threads)

    def multiply(self, num_tokens: int) -> None:
        """The integer products of a pass over so many tokens and nothing else, for a benchmark's floor."""
        self._core.multiply(num_tokens)

    def _complain(self, ids: Ids, lengths: Sequence[int]) -> NoReturn:
        """Say what is wrong with texts that were not read."""
        of = self._architecture
        if min(lengths) < 1:
            raise ShapeMismatch("a text has no ids: give the encoder [CLS] and [SEP] at least")
        if max(lengths) > of.max_positions:
            raise InvalidInput(f"a text of {max(lengths)} tokens is too long: cut it to {of.max_positions}")
        raise InvalidInput(
            f"token ids must be within 0 to {of.vocab_size - 1}, not {ids.min()} to {ids.max()}: "
            "use the model's own tokenizer"
        )


class StartedTexts:
    """Texts that are being read, in order."""

    def __init__(self, job: "Job", ends: Sequence[int], states: Floats, sums: Floats) -> None:
        """`ends` [n + 1] are where texts end among the states [tokens, H], from 0 on; sums [n, H]."""
        self._job, self._ends, self._states, self._sums = job, ends, states, sums

    def part(self, of: slice) -> tuple[Floats, list[NDArray[np.float32]]]:
        """Points and states of these texts, as `NativeSentenceEncoder.read` gives them; who asks helps to read."""
        self._job.finish(of.stop)
        sums = self._sums[of]
        ends = self._ends[of.start : of.stop + 1]
        states = [self._states[start:end] for start, end in pairwise(ends)]
        return sums / np.sqrt((sums * sums).sum(axis=1, keepdims=True)), states


def _arrays(
    of: Architecture, given: WrittenArrays, steps: Mapping[str, np.float32]
) -> tuple[NDArray[Any], ...]:
    """What the encoder reads, in the order of encoder_core.c: the whole model's five, then nineteen for each layer.

    Raises: KeyError, for an array that the graph lacks.
    """
    words = "embeddings.word_embeddings.weight"
    prefix = "bert." if f"bert.{words}:words" in given else ""

    def norm(at: str) -> list[NDArray[Any]]:
        ends = ("gamma", "beta") if f"{at}.gamma:copy" in given else ("weight", "bias")
        return [given[f"{at}.{end}:copy"] for end in ends]

    arrays = [given[f"{prefix}{words}:words"], given[f"{prefix}{words}:scales"], given["places"]]
    arrays += norm(f"{prefix}embeddings.LayerNorm")
    for layer in range(of.num_layers):
        at = f"{prefix}encoder.layer.{layer}."
        attention, out = f"{at}attention.self.query.weight", f"{at}attention.output.dense.weight"
        up, down = f"{at}intermediate.dense.weight", f"{at}output.dense.weight"
        products = (attention, out, up, down)
        arrays.append(np.array([steps[f"{name}:int8"] for name in products], np.float32))
        arrays += [given[f"{attention}:inverse"], *norm(f"{at}attention.output.LayerNorm")]
        arrays += [given[f"{up}:inverse"], *norm(f"{at}output.LayerNorm")]
        for name in products:
            arrays += [given[f"{name}:{part}"] for part in ("int8", "scale", "bias")]
    return tuple(np.ascontiguousarray(array) for array in arrays)
