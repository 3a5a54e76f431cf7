"""The process that writes: `python -m htfi.apps.service.openai_api.engine_process TARGET DRAFT` (empty: the shipped).

It reads questions from standard input and writes answers to standard output. Between two rounds of the texts under way
it takes up new questions and embeds a few texts: no request waits for another to end.
"""

import os
import queue
import sys
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO

import msgspec
import numpy as np

from htfi.apps.service.openai_api.messages import (
    HEAD_BYTES,
    Answer,
    Begun,
    Cancel,
    Counts,
    Embed,
    Embedded,
    Part,
    Question,
    Refused,
    Turn,
    Write,
    WrittenToken,
)
from htfi.apps.service.problems import status_of
from htfi.decoding.automaton import TextGrammar, TokenAutomaton
from htfi.decoding.sampling import SamplingParams
from htfi.decoding.texts.batch import Text, TextPart
from htfi.decoding.texts.json_grammar import LanguageGrammar
from htfi.decoding.texts.json_schema import any_object, language_of
from htfi.decoding.texts.logprobs import TokenLogprob
from htfi.domain.errors import HtfiError, InvalidInput
from htfi.wiring.service.language_models import LanguageModelPair, LanguageModels

_TEXTS_AT_ONCE = 16  # embedded between two rounds
_MAX_FORMS = 32  # grammars of schemas that are kept


class UnusableRequest(InvalidInput):
    """What a request asks for cannot be done."""

    def __init__(self, message: str, param: str, code: str | None = None) -> None:
        super().__init__(message)
        self.param, self.code = param, code


@dataclass(slots=True, eq=False)
class _Embedding:
    """A request to embed: texts still to be read, and the points of the others."""

    id: int
    tenant: str
    waiting: deque[str]
    points: list[bytes] = field(default_factory=list[bytes])
    num_tokens: int = 0
    cpu_s: float = 0.0


class Engine:
    """Answers questions in turns; `answers` gets the frames. For one thread."""

    def __init__(self, models: LanguageModels, answers: BinaryIO) -> None:
        self._models, self._answers = models, answers
        self._open: dict[int, list[Text]] = {}
        self._tenants: dict[int, str] = {}  # of the open ones
        self._paused: set[str] = set()
        self._embeddings: deque[_Embedding] = deque()
        self._forms: OrderedDict[bytes, LanguageGrammar] = OrderedDict()
        self._held: dict[tuple[int, int], tuple[list[str], list[WrittenToken]]] = {}  # of texts not streamed
        self._encode = msgspec.msgpack.Encoder().encode

    @property
    def is_idle(self) -> bool:
        return not self._is_writing and self._next_embedding is None

    @property
    def _is_writing(self) -> bool:
        return any(self._tenants[number] not in self._paused for number in self._open)

    @property
    def _next_embedding(self) -> _Embedding | None:
        return next((one for one in self._embeddings if one.tenant not in self._paused), None)

    def take(self, question: Question) -> None:
        """Begin an answer, or end one."""
        match question:
            case Write():
                try:
                    self._begin(question)
                except (HtfiError, RecursionError) as error:
                    self._refuse(question.id, error)
            case Embed():
                self._embeddings.append(_Embedding(question.id, question.tenant, deque(question.texts)))
            case Cancel(id=number):
                self._held = {key: held for key, held in self._held.items() if key[0] != number}
                self._tenants.pop(number, None)
                for text in self._open.pop(number, ()):
                    self._models.batch.cancel(text)
                self._embeddings = deque(one for one in self._embeddings if one.id != number)
            case Turn(tenant=tenant, is_paused=is_paused):
                (self._paused.add if is_paused else self._paused.discard)(tenant)
                for number, texts in self._open.items():
                    if self._tenants[number] == tenant:
                        for text in texts:
                            text.is_paused = is_paused

    def turn(self) -> None:
        """One round of all texts, and some of the texts to embed."""
        if self._is_writing:
            self._models.batch.step()
        embedding = self._next_embedding
        if embedding is not None:
            self._embed(embedding)
        self._answers.flush()

    def _begin(self, asked: Write) -> None:
        models, began_s = self._models, time.perf_counter()
        match asked.prompt:
            case str():
                prompt, param = models.text_prompt(asked.prompt), "prompt"
            case [int(), *_]:
                prompt, param = models.ids_prompt(asked.prompt), "prompt"  # type: ignore[arg-type]
            case _:
                prompt, param = models.chat_prompt(asked.prompt), "messages"  # type: ignore[arg-type]
        max_tokens = self._max_tokens(asked, len(prompt), param)
        grammar = self._grammar(asked, max_tokens)
        sampling = SamplingParams(asked.temperature, 0, asked.top_p)
        texts: list[Text] = []
        for choice, seed in enumerate(asked.seeds):
            receive = partial(self._send_part, asked, choice, began_s)
            texts.append(
                models.batch.add(prompt, grammar, sampling, seed, receive, asked.stops, asked.num_logprobs)
            )
        for text in texts:
            text.is_paused = asked.tenant in self._paused
        self._open[asked.id], self._tenants[asked.id] = texts, asked.tenant
        self._send(Begun(asked.id, models.fingerprint))

    def _max_tokens(self, asked: Write, num_prompt: int, param: str) -> int:
        most = self._models.max_tokens
        if num_prompt + (asked.max_tokens or 1) > most:
            wanted = "at least 1" if asked.max_tokens is None else str(asked.max_tokens)
            raise UnusableRequest(
                f"This model's maximum context length is {most} tokens. However, you requested {wanted} in the "
                f"completion and your {param} have {num_prompt} tokens: shorten one of them",
                param,
                "context_length_exceeded",
            )
        return most - num_prompt if asked.max_tokens is None else asked.max_tokens

    def _grammar(self, asked: Write, max_tokens: int) -> TokenAutomaton:
        models = self._models
        if asked.form == "text":
            return TextGrammar(models.engine.vocabulary, models.end, max_tokens)
        if models.end is None:
            raise UnusableRequest(
                "the model has no token that ends a text, which a form needs", "response_format"
            )
        form = self._forms.get(asked.schema)
        if form is None:
            try:
                part = language_of(msgspec.json.decode(asked.schema)) if asked.schema else any_object()
                form = LanguageGrammar(part, models.token_texts, models.end, 0)
            except InvalidInput as error:
                raise UnusableRequest(str(error), "response_format") from error
            self._forms[asked.schema] = form
            if len(self._forms) > _MAX_FORMS:
                self._forms.popitem(last=False)
        self._forms.move_to_end(asked.schema)
        return form.bounded(max_tokens)

    def _embed(self, asked: _Embedding) -> None:
        encoder, began_s = self._models.encoder, time.process_time()
        texts = [asked.waiting.popleft() for _ in range(min(_TEXTS_AT_ONCE, len(asked.waiting)))]
        try:
            for text in texts:
                num = encoder.num_tokens(text)
                if num > encoder.max_tokens:
                    raise UnusableRequest(
                        f"This model's maximum context length is {encoder.max_tokens} tokens, however you requested "
                        f"{num} tokens in one input: shorten it",
                        "input",
                        "context_length_exceeded",
                    )
                asked.num_tokens += num
            asked.points.append(np.ascontiguousarray(encoder.encode(texts), "<f4").tobytes())
        except HtfiError as error:
            self._embeddings.remove(asked)
            self._refuse(asked.id, error)
            return
        asked.cpu_s += time.process_time() - began_s
        if asked.waiting:
            self._embeddings.remove(asked)
            self._embeddings.append(asked)  # the next request's turn
            return
        self._embeddings.remove(asked)
        self._send(Embedded(asked.id, encoder.size, b"".join(asked.points), asked.num_tokens, asked.cpu_s))

    def _send_part(self, asked: Write, choice: int, began_s: float, part: TextPart) -> None:
        tokens = [] if asked.num_logprobs is None else [self._written(one) for one in part.logprobs]
        if not asked.is_stream:
            text, logprobs = self._held.setdefault((asked.id, choice), ([], []))
            text.append(part.text)
            logprobs += tokens
            if part.finish is None and not part.problem:
                return
            del self._held[asked.id, choice]
            part, tokens = replace(part, text="".join(text)), logprobs
        counts = Counts(*(getattr(part.counts, name) for name in Counts.__struct_fields__))
        finish = "" if part.finish is None else part.finish.value
        is_last = bool(finish or part.problem)
        engine_ms = 1e3 * (time.perf_counter() - began_s) if is_last else 0.0
        self._send(Part(asked.id, choice, part.text, tokens, counts, finish, part.problem, engine_ms))
        if is_last:
            batch = self._models.batch
            left = [text for text in self._open.get(asked.id, ()) if batch.holds(text)]
            self._open[asked.id] = left
            if not left:
                del self._open[asked.id], self._tenants[asked.id]

    def _written(self, token: TokenLogprob) -> WrittenToken:
        top = [(self._piece(other), logprob) for other, logprob in token.top]
        return WrittenToken(self._piece(token.token), token.logprob, top)

    def _piece(self, token: int) -> str:
        return self._models.target.tokenizer.piece(token) or ""

    def _refuse(self, number: int, error: Exception) -> None:
        status = (
            400
            if isinstance(error, InvalidInput)
            else status_of(error)
            if isinstance(error, HtfiError)
            else 400
        )
        param, code = getattr(error, "param", None), getattr(error, "code", None)
        self._send(Refused(number, str(error), int(status), param, code))

    def _send(self, answer: Answer) -> None:
        content = self._encode(answer)
        self._answers.write(len(content).to_bytes(HEAD_BYTES, "big") + content)


def _read_into(questions: BinaryIO, found: "queue.SimpleQueue[Question | None]") -> None:
    try:
        decoder: Any = msgspec.msgpack.Decoder(Question)
        while len(head := questions.read(HEAD_BYTES)) == HEAD_BYTES:
            found.put(decoder.decode(questions.read(int.from_bytes(head, "big"))))
    finally:
        found.put(None)  # without questions the process has no more to do


def work(models: LanguageModels, questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the questions end."""
    engine = Engine(models, answers)
    found: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
    threading.Thread(target=_read_into, args=(questions, found), daemon=True).start()
    while True:
        try:
            question = found.get(block=engine.is_idle)
        except queue.Empty:
            engine.turn()
            continue
        if question is None:
            return
        engine.take(question)
        answers.flush()


if __name__ == "__main__":
    pipe = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer
    os.setpgid(
        0, 0
    )  # Ctrl-C is for the service; in its session, without which niceness says nothing (sched(7))
    with os.fdopen(pipe, "wb") as own:
        work(LanguageModels(LanguageModelPair(*sys.argv[1:3])), sys.stdin.buffer, own)
