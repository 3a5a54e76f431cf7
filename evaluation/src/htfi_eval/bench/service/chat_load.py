"""Chat requests for `htfi bench service`, in a process of their own: over HTTP, or by the same models without it.

python -m htfi_eval.bench.service.chat_load http PORT
python -m htfi_eval.bench.service.chat_load bare

Prints `ready`; each line of standard input, FIRST NUM, asks so many requests with the seeds from FIRST on, one after
the other, and is answered with one line of JSON.
"""

import http.client
import json
import sys
import time
from collections.abc import Callable, Sequence

import msgspec

from htfi.decoding.automaton import TextGrammar
from htfi.decoding.sampling import SamplingParams
from htfi.decoding.texts.batch import TextPart
from htfi.wiring.service.language_models import WRITER, LanguageModels

NUM_TOKENS = 48
_PATH = "/v1/chat/completions"


class ChatTimes(msgspec.Struct):
    """Of requests, in ms: whole answers, what the engine had of each (nothing where it was asked itself), and of the
    same requests as streams the first token and the whole; the tokens of all whole answers.
    """

    whole_ms: list[float]
    engine_ms: list[float]
    first_ms: list[float]
    stream_ms: list[float]
    num_tokens: int


def messages_of(seed: int) -> list[tuple[str, str]]:
    """A prompt that no other seed has: nothing of it was read before."""
    return [("user", f"Case {seed}: what moved prices?")]


def over_http(port: int) -> Callable[[int, int], ChatTimes]:
    """Asks a service over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)

    def ask(seed: int, *, is_stream: bool) -> http.client.HTTPResponse:
        messages = [{"role": role, "content": content} for role, content in messages_of(seed)]
        body = {
            "model": WRITER,
            "messages": messages,
            "seed": seed,
            "max_tokens": NUM_TOKENS,
            "stream": is_stream,
        }
        connection.request("POST", _PATH, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {answer.read()[:200]!r}")
        return answer

    def times(first: int, num: int) -> ChatTimes:
        found = ChatTimes([], [], [], [], 0)
        for seed in range(first, first + num):
            began_s = time.perf_counter()
            answer = ask(2 * seed, is_stream=False)
            content = answer.read()
            found.whole_ms.append(_ms_since(began_s))
            found.engine_ms.append(float(answer.headers["openai-processing-ms"]))
            found.num_tokens += json.loads(content)["usage"]["completion_tokens"]
            began_s = time.perf_counter()
            answer = ask(2 * seed + 1, is_stream=True)
            while b'"content":"' not in (line := answer.readline()) or b'"content":""' in line:
                if not line:
                    raise RuntimeError("a stream ended without a token")
            found.first_ms.append(_ms_since(began_s))
            answer.read()
            found.stream_ms.append(_ms_since(began_s))
        return found

    return times


def bare() -> Callable[[int, int], ChatTimes]:
    """Writes the same texts by the same models in this process."""
    models = LanguageModels()

    def write(seed: int) -> tuple[float, float, int]:
        began_s, first_ms, parts = time.perf_counter(), list[float](), list[TextPart]()

        def receive(part: TextPart) -> None:
            parts.append(part)
            if part.text and not first_ms:
                first_ms.append(_ms_since(began_s))

        grammar = TextGrammar(models.engine.vocabulary, models.end, NUM_TOKENS)
        prompt = models.chat_prompt(messages_of(seed))
        models.batch.add(prompt, grammar, SamplingParams(1.0, 0, 1.0), seed, receive)
        while models.batch.num_open:
            models.batch.step()
        return _ms_since(began_s), first_ms[0] if first_ms else 0.0, parts[-1].counts.num_written

    def times(first: int, num: int) -> ChatTimes:
        found = ChatTimes([], [], [], [], 0)
        for seed in range(first, first + num):
            whole_ms, _, num_tokens = write(2 * seed)
            found.whole_ms.append(whole_ms)
            found.num_tokens += num_tokens
            stream_ms, first_ms, _ = write(2 * seed + 1)
            found.first_ms.append(first_ms)
            found.stream_ms.append(stream_ms)
        return found

    return times


def _ms_since(began_s: float) -> float:
    return 1e3 * (time.perf_counter() - began_s)


def main(words: Sequence[str]) -> None:
    """Answer the lines of standard input."""
    times = over_http(int(words[1])) if words[0] == "http" else bare()
    times(0, 5)  # the models are loaded at the first request
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        first, num = map(int, line.split())
        sys.stdout.write(msgspec.json.encode(times(first, num)).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
