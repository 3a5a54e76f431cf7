"""An output grammar as an automaton over token ids: the allowed next tokens, and the fields of an answer.

Everything is computed when the grammar is compiled, so that a decoding step is a look-up.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from htfi.decoding.ports import Ids
from htfi.decoding.sampling import AllowedTokens
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.generation import AnyTextField, ChoiceField, FixedField, FreeTextField, OutputGrammar

MAX_CACHED_GRAMMARS = 256
_NO_TOKENS = AllowedTokens.of(np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class GrammarState:
    """One state: the one token that must come (`forced`), or the tokens to choose among (then `forced` is −1)."""

    part: int  # of the grammar
    allowed: AllowedTokens
    forced: int


@dataclass(slots=True)
class _StateUnderConstruction:
    part: int
    jumps: dict[int, tuple[int, int]] = field(
        default_factory=dict[int, tuple[int, int]]
    )  # token → next state, its part
    others: int = -1  # next state of every other allowed token of free text
    admitted: AllowedTokens | None = None


@dataclass(frozen=True, slots=True)
class _FieldReader:
    """How the tokens of one part become its field."""

    name: str
    options: dict[tuple[int, ...], int]
    num_ending: int
    slots: dict[int, str]


class CompiledGrammar:
    """States count from `start`; `done` is the last. `max_tokens` bounds the length of any answer."""

    is_flat = True

    def __init__(self, grammar: OutputGrammar, vocabulary: Vocabulary) -> None:
        build = _GrammarCompiler(grammar, vocabulary)
        self.start = 0
        self.done = len(build.states) - 1
        alike: dict[tuple[int, ...], AllowedTokens] = {}  # states with equal tokens are sampled together
        self.steps = tuple(_grammar_state(state, alike) for state in build.states[:-1])
        self.max_tokens = build.longest
        self._states = build.states
        self._readings = build.readings
        self._tokenizer = vocabulary.tokenizer

    def advance(self, state: int, token: int) -> int:
        """The state after an allowed token. Raises IntegrityError for any other."""
        return self._jump(state, token)[0]

    def allows(self, state: int, token: int) -> bool:
        """Whether a token is allowed in a state before `done`."""
        here = self._states[state]
        return token in here.jumps or (here.others >= 0 and _contains(self.steps[state].allowed.ids, token))

    def transitions(self, state: int) -> tuple[Ids, Ids]:
        """The allowed tokens of a state, rising, and the next state of each; none for the last state."""
        here, step = self._states[state], self.steps[state]
        ids = step.allowed.ids if step.forced < 0 else np.array([step.forced], np.int64)
        nexts: Ids = np.full(len(ids), here.others, np.int64)
        tokens = np.array(list(here.jumps), np.int64)
        nexts[ids.searchsorted(tokens)] = [after for after, _ in here.jumps.values()]
        return ids, nexts

    def forced(self, state: int) -> tuple[list[int], int]:
        """The tokens that must follow, and the state after them."""
        tokens: list[int] = []
        while state != self.done and (token := self.steps[state].forced) >= 0:
            tokens.append(token)
            state = self.advance(state, token)
        return tokens, state

    def open_positions(self, tokens: Sequence[int]) -> list[tuple[int, GrammarState, str]]:
        """Positions of an answer that were not forced, with the state there and the field name.

        Raises IntegrityError if the tokens do not hold to the grammar.
        """
        open_places: list[tuple[int, GrammarState, str]] = []
        state = self.start
        for place, token in enumerate(tokens):
            step = None if state == self.done else self.steps[state]
            if step is not None and step.forced < 0:
                reading = self._readings[step.part]
                open_places.append((place, step, reading.name if reading else ""))
            state = self.advance(state, token)
        return open_places

    def fields(self, tokens: Sequence[int]) -> dict[str, str]:
        """Every field of a complete answer. Raises IntegrityError if the tokens break the grammar or end early."""
        parts, state = self._parts(tokens)
        if state != self.done:
            raise IntegrityError(f"the answer of {len(tokens)} tokens ends before its grammar does")
        return {
            reading.name: self._read(reading, part)
            for reading, part in zip(self._readings, parts, strict=True)
            if reading is not None
        }

    def fields_so_far(self, tokens: Sequence[int]) -> dict[str, str]:
        """The fields of an answer under way: those that are complete, and free text as far as it is written.

        `tokens` end where one is to be chosen. Raises IntegrityError if they break the grammar.
        """
        parts, state = self._parts(tokens)
        if state == self.done:
            return self.fields(tokens)
        open_part = self.steps[state].part
        found: dict[str, str] = {}
        for place, (reading, part) in enumerate(zip(self._readings, parts, strict=True)):
            if reading is None or place > open_part or (place == open_part and reading.options):
                continue
            num_ending = 0 if place == open_part else reading.num_ending
            found[reading.name] = self._read(replace(reading, num_ending=num_ending), part)
        return found

    def _parts(self, tokens: Sequence[int]) -> tuple[list[list[int]], int]:
        """The tokens of each part, and the state after them."""
        parts: list[list[int]] = [[] for _ in self._readings]
        state = self.start
        for token in tokens:
            state, part = self._jump(state, token)
            parts[part].append(token)
        return parts, state

    def _read(self, reading: _FieldReader, tokens: Sequence[int]) -> str:
        if reading.options:
            return str(reading.options[tuple(tokens)])
        words: list[str] = []
        run: list[int] = []
        for token in tokens[: len(tokens) - reading.num_ending]:
            if token in reading.slots:
                words += [self._tokenizer.decode(run), "{" + reading.slots[token] + "}"]
                run = []
            else:
                run.append(token)
        return "".join([*words, self._tokenizer.decode(run)])

    def _jump(self, state: int, token: int) -> tuple[int, int]:
        if state == self.done:
            raise IntegrityError("a token after the end of its grammar")
        here = self._states[state]
        if (jump := here.jumps.get(token)) is not None:
            return jump
        if here.others >= 0 and _contains(self.steps[state].allowed.ids, token):
            return here.others, here.part
        raise IntegrityError(f"token {token} is not allowed at this position of its grammar")


class GrammarCache:
    """Compiled grammars of one vocabulary; the least recently used is dropped."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._kept: OrderedDict[OutputGrammar, CompiledGrammar] = OrderedDict()
        self._same: tuple[OutputGrammar, CompiledGrammar] | None = (
            None  # the latest: hashing a long grammar takes ms
        )

    def compiled(self, grammar: OutputGrammar) -> CompiledGrammar:
        """Raises InvalidInput for a grammar that this vocabulary cannot express."""
        if self._same is not None and self._same[0] is grammar:
            return self._same[1]
        known = self._kept.get(grammar)
        if known is None:
            known = self._kept[grammar] = CompiledGrammar(grammar, self._vocabulary)
            if len(self._kept) > MAX_CACHED_GRAMMARS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(grammar)
        self._same = grammar, known
        return known


class _GrammarCompiler:
    """Compiles the parts one after the other; each starts in the state where the previous one ended."""

    def __init__(self, grammar: OutputGrammar, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.states = [_StateUnderConstruction(0)]
        self.readings: list[_FieldReader | None] = []
        self.longest = 0
        names: set[str] = set()
        for place, part in enumerate(grammar):
            if not isinstance(part, FixedField):
                if part.name in names:
                    raise InvalidInput(f"a grammar names the field '{part.name}' twice")
                names.add(part.name)
            self.states[-1].part = place
            match part:
                case FixedField():
                    self._fixed(place, vocabulary.encode(part.segments))
                case ChoiceField():
                    after = grammar[place + 1] if place + 1 < len(grammar) else None
                    follow = vocabulary.encode(after.segments) if isinstance(after, FixedField) else []
                    self._choice(place, part, follow)
                case FreeTextField():
                    self._words(place, part)

    def _fixed(self, place: int, tokens: Sequence[int]) -> None:
        self.readings.append(None)
        self._chain(place, tokens)
        self.longest += len(tokens)

    def _chain(self, place: int, tokens: Sequence[int]) -> None:
        for token in tokens:
            self.states[-1].jumps[token] = (len(self.states), place)
            self.states.append(_StateUnderConstruction(place))

    def _choice(self, place: int, part: ChoiceField, follow: Sequence[int]) -> None:
        """A trie of the options. If one is a prefix of another, the next part's first token ends it."""
        options = [tuple(self.vocabulary.encode(option)) for option in part.options]
        where = f"the choice '{part.name}'"
        if not options:
            raise InvalidInput(f"{where} has no option")
        if len(set(options)) < len(options):
            raise InvalidInput(f"{where} has two options with the same tokens")
        self.readings.append(_FieldReader(part.name, {option: i for i, option in enumerate(options)}, 0, {}))
        self.longest += max(map(len, options))
        nodes: dict[tuple[int, ...], int] = {(): len(self.states) - 1}
        leaves: list[tuple[int, int]] = []  # state and token that lead to the end
        inner = {option[:size] for option in options for size in range(len(option))}
        for option in options:
            for size, token in enumerate(option, 1):
                path = option[:size]
                if path in inner and path not in nodes:
                    nodes[path] = len(self.states)
                    self.states.append(_StateUnderConstruction(place))
                    self.states[nodes[path[:-1]]].jumps[token] = (nodes[path], place)
                elif path not in inner:
                    leaves.append((nodes[path[:-1]], token))
        if inner:
            end = len(self.states)
            self.states.append(_StateUnderConstruction(place))
        else:
            end = len(self.states) - 1  # the one option is empty
        for state, token in leaves:
            self.states[state].jumps[token] = (end, place)
        for option in options:
            if option in inner:
                self._end_early(nodes[option], place, part.name, follow, end)

    def _end_early(self, node: int, place: int, name: str, follow: Sequence[int], end: int) -> None:
        if not follow or follow[0] in self.states[node].jumps:
            raise InvalidInput(
                f"the choice '{name}' has an option that is a prefix of another; "
                "let a fixed part follow that starts differently"
            )
        self.states[node].jumps[follow[0]] = (
            end + 1,
            place + 1,
        )  # the fixed part's states start at `end`

    def _words(self, place: int, part: FreeTextField) -> None:
        ending = self.vocabulary.segment(part.end)
        if not ending or part.max_tokens < 0:
            raise InvalidInput(
                f"the words '{part.name}' need an end marker of at least one token and a bound ≥ 0"
            )
        slots = {self.vocabulary.mark(slot.name): slot.name for slot in part.slots}
        if ending[0] in slots:
            raise InvalidInput(f"the words '{part.name}' have a slot that equals their end marker")
        self.readings.append(_FieldReader(part.name, {}, len(ending), slots))
        words = self.vocabulary.text_ids if isinstance(part, AnyTextField) else self.vocabulary.word_ids
        ids = np.union1d(words, [*slots, ending[0]]).astype(np.int64)
        admitted = AllowedTokens.of(ids)
        first = len(self.states) - 1
        self.states += [_StateUnderConstruction(place) for _ in range(part.max_tokens)]
        for state in range(first, first + part.max_tokens):
            self.states[state].admitted = admitted
            self.states[state].others = state + 1
        for state in range(first, first + part.max_tokens + 1):
            self.states[state].jumps[ending[0]] = (first + part.max_tokens + 1, place)
        self.states.append(_StateUnderConstruction(place))
        self._chain(place, ending[1:])
        self.longest += part.max_tokens + len(ending)


def _grammar_state(
    state: _StateUnderConstruction, alike: dict[tuple[int, ...], AllowedTokens]
) -> GrammarState:
    if state.admitted is not None:
        return GrammarState(state.part, state.admitted, -1)
    tokens = tuple(sorted(state.jumps))
    if len(tokens) == 1:
        return GrammarState(state.part, _NO_TOKENS, tokens[0])
    if tokens not in alike:
        alike[tokens] = AllowedTokens.of(np.array(tokens, np.int64))
    return GrammarState(state.part, alike[tokens], -1)


def _contains(ids: Ids, token: int) -> bool:
    place = int(np.searchsorted(ids, token))
    return place < len(ids) and int(ids[place]) == token
