"""`htfi.load_pair`: a target model that writes and a draft that guesses ahead: the same text, in fewer passes."""

from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NoReturn, overload

import msgspec

from htfi import models
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.sampling import SamplingParams, check_sampling_params
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.generation import (
    AnyTextField,
    Completion,
    ControlToken,
    FreeTextField,
    GenerationRequest,
    PlainText,
    PromptSegment,
    RequestRefused,
)
from htfi.library.arguments import not_copied, real_number, whole_number
from htfi.wiring.marking import open_key
from htfi.wiring.models.readers import open_model_pair
from htfi.wiring.models.speculation import speculative_generator
from htfi.wiring.settings import load_settings, override

_FIELD = "text"
_HALF_CHARACTER = "\ufffd"  # what bytes decode to before the rest of their character is written
# The mini dialect knows text as the headline of one item of news for no symbol in particular, so that is what it is
# asked to continue.
_HEADLINE = (ControlToken("s"), ControlToken("news"), ControlToken("h1"), ControlToken("wide"))
# What model families call the end of a text, for folders whose config.json does not say.
_ENDS = ("|im_end|", "|eot_id|", "end_of_turn", "|end_of_text|", "|endoftext|", "eos", "/s")


@dataclass(frozen=True, slots=True)
class Generation:
    """What was written: the text, its tokens, and how many passes of the target it took after the prompt's.

    Examples:
        >>> import htfi
        >>> writer = htfi.load_pair()
        >>> written = writer.generate("Shares of Acme fell after", max_new_tokens=12, temperature=1.0, seed=7)
        >>> str(written) == written.text, written.tokens_per_pass >= 1.0
        (True, True)
    """

    text: str
    tokens: tuple[int, ...]
    num_passes: int

    @property
    def tokens_per_pass(self) -> float:
        """1 without a draft; more where drafted tokens are accepted."""
        return len(self.tokens) / max(self.num_passes, 1)

    def __str__(self) -> str:
        return self.text


class GenerationStream:
    """An iterator over the pieces of a text, each handed out when the target has accepted it.

    Joined, they are the text that `generate` returns. `close` gives up a text that is not wanted to its end.

    Examples:
        >>> import htfi
        >>> writer = htfi.load_pair()
        >>> stream = writer.generate("Shares of Acme fell after", max_new_tokens=12, seed=7, stream=True)
        >>> "".join(stream) == stream.generation.text
        True
    """

    def __init__(
        self, passes: Generator[dict[str, str], None, Completion | RequestRefused], bound: int, lock: Lock
    ) -> None:
        self._passes = passes
        self._bound = bound
        self._lock = lock
        self._text = ""
        self._generation: Generation | None = None

    @property
    def generation(self) -> Generation:
        """The whole, once the pieces were iterated over. Raises: InvalidInput before."""
        if self._generation is None:
            raise InvalidInput("the text is not complete: iterate over its pieces first")
        return self._generation

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while self._generation is None:
            try:
                with self._lock:
                    text = next(self._passes)[_FIELD].rstrip(_HALF_CHARACTER)
            except StopIteration as ended:
                if ended.value is None:  # it was closed, or has failed
                    break
                self._generation = _generation(ended.value, self._bound)
                text = self._generation.text
            piece, self._text = text[len(self._text) :], text
            if piece:
                return piece
        raise StopIteration

    def close(self) -> None:
        """Stop writing."""
        with self._lock:
            self._passes.close()


class Writer:
    """A pair of models that is loaded. Threads may share it: they write in turns.

    Examples:
        >>> import htfi
        >>> writer = htfi.load_pair()
        >>> first = writer.generate("Shares of Acme fell after", max_new_tokens=8, temperature=1.0, seed=7)
        >>> again = writer.generate("Shares of Acme fell after", max_new_tokens=8, temperature=1.0, seed=7)
        >>> first == again
        True
    """

    def __init__(
        self, generator: LocalGenerator, opening: tuple[PromptSegment, ...], end: ControlToken | PlainText
    ) -> None:
        self._generator = generator
        self._opening = opening
        self._end = end
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"writer of {self._generator.version}"

    def __reduce__(self) -> NoReturn:
        raise not_copied(self, "threads may share it; in another process load the pair again")

    @overload
    def generate(
        self,
        prompt: str,
        *,
        max_new_tokens: int = 64,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        mark_key: str | Path | None = None,
        stream: Literal[False] = False,
    ) -> Generation: ...

    @overload
    def generate(
        self,
        prompt: str,
        *,
        max_new_tokens: int = 64,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        mark_key: str | Path | None = None,
        stream: Literal[True],
    ) -> GenerationStream: ...

    def generate(
        self,
        prompt: str,
        *,
        max_new_tokens: int = 64,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        mark_key: str | Path | None = None,
        stream: bool = False,
    ) -> Generation | GenerationStream:
        """Continue a prompt. At temperature 0 the likeliest token is taken; else the seed decides among the others.

        The text ends where the model ends it, or after `max_new_tokens`. With `mark_key`, the file of a marking key,
        the noise follows from the key, and `htfi.verify_mark` finds it in the text, which then holds words without
        digits; seeds count modulo 256. With `stream` the text comes piece by piece, each as soon as the target has
        accepted it. The draft changes how long it takes and no token. Raises: InvalidInput, DependencyUnavailable.
        """
        if not isinstance(prompt, str) or not prompt:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"prompt={prompt!r:.80}: give a text to continue")
        bound = whole_number("max_new_tokens", max_new_tokens, 1)
        seed, top_k = whole_number("seed", seed), whole_number("top_k", top_k)
        temperature, top_p = real_number("temperature", temperature), real_number("top_p", top_p)
        check_sampling_params(SamplingParams(temperature, top_k, top_p))
        form: type[FreeTextField] = AnyTextField
        if mark_key is not None:
            seed, form = self._marked_seed(Path(mark_key), seed, temperature), FreeTextField
        request = GenerationRequest(
            (*self._opening, PlainText(f" {prompt}" if self._opening else prompt)),
            (form(_FIELD, bound, self._end),),
            seed,
            temperature,
            top_k=top_k,
            top_p=top_p,
            kind="text",
        )
        if stream:
            return GenerationStream(self._generator.write_in_passes(request), bound, self._lock)
        with self._lock:
            return _generation(self._generator.write([request])[0], bound)

    def _marked_seed(self, key: Path, seed: int, temperature: float) -> int:
        if temperature == 0.0:
            raise InvalidInput("at temperature 0 no noise chooses, so nothing is marked: give a temperature")
        if rule := self._generator.speculation_stats.rule:
            raise InvalidInput(
                f"decoding.rule '{rule}' takes other noise, which leaves no mark: use 'coupled'"
            )
        return open_key(key).seed(seed)


def _generation(answer: Completion | RequestRefused, bound: int) -> Generation:
    """At most `bound` tokens: the end that follows them is put in, not written.

    Raises: DependencyUnavailable where nothing was written.
    """
    if isinstance(answer, RequestRefused):
        raise DependencyUnavailable(f"nothing was written: {answer.reason}")
    return Generation(answer.fields[_FIELD], answer.tokens[:bound], len(answer.rounds))


def load_pair(target: str | Path | None = None, draft: str | Path | None = None) -> Writer:
    """The models of two folders; the shipped pair without them. Raises: InvalidInput, IntegrityError.

    Examples:
        >>> import htfi
        >>> writer = htfi.load_pair()                         # or the folders of a target and a draft
        >>> str(writer.generate("Shares of Acme fell after", max_new_tokens=4)) != ""
        True
    """
    settings = load_settings()
    folders = {"target": str(target or models.TARGET), "draft": str(draft or models.DRAFT)}
    settings = override(settings, "models", **folders)
    of_target, of_draft = open_model_pair(settings.models)
    generator = speculative_generator(of_target, of_draft, settings.decoding)
    if of_target.vocabulary.dialect.is_mini:
        return Writer(generator, _HEADLINE, ControlToken("/news"))
    return Writer(generator, (), _end_of_text(Path(folders["target"]), of_target.vocabulary))


def _end_of_text(folder: Path, vocabulary: Vocabulary) -> ControlToken | PlainText:
    """The token with which a model ends a text: as its config.json says, else by its name; else a line's end."""
    special = vocabulary.tokenizer.special
    found = {name: special(f"<{name}>") for name in _ENDS}
    stated: list[Any] = []
    for file in ("generation_config.json", "config.json"):
        with suppress(OSError, msgspec.DecodeError):
            ids = msgspec.json.decode((folder / file).read_bytes(), type=dict[str, Any]).get("eos_token_id")
            stated += ids if isinstance(ids, list) else [ids]
    for name, token in found.items():
        if token is not None and token in stated:
            return ControlToken(name)
    known = next((name for name, token in found.items() if token is not None), None)
    return PlainText("\n") if known is None else ControlToken(known)
