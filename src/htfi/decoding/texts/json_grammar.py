"""A language of characters as a grammar over a vocabulary's tokens; its states are found as answers reach them."""

from collections.abc import Sequence

import numpy as np

from htfi.decoding.ports import Ids
from htfi.decoding.sampling import AllowedTokens
from htfi.decoding.texts.language import Part, Position, start, step
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import IntegrityError, InvalidInput

_NO_TOKENS = AllowedTokens.of(np.zeros(0, np.int64))
_DEAD = -1


class _Branch:
    """A node of the tree of all tokens' texts: the tokens that end here, and what each next character leads to."""

    __slots__ = ("nexts", "tokens")

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.nexts: dict[str, _Branch] = {}


_ASCII = [chr(code) for code in range(ord(" "), ord("~") + 1)]


class TokenTexts:
    """The texts of a vocabulary's plain tokens as a tree; built once for a vocabulary. `lacks`: the characters of ASCII
    that it has no token for. With all of them every document can be written to its end.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokenizer = vocabulary.tokenizer
        self.root = _Branch()
        self.pieces: dict[int, str] = {}
        for token in vocabulary.text_ids.tolist():
            piece = vocabulary.tokenizer.piece(token)
            if not piece:
                continue
            self.pieces[token] = piece
            branch = self.root
            for character in piece:
                branch = branch.nexts.setdefault(character, _Branch())
            branch.tokens.append(token)
        self.lacks = [one for one in _ASCII if one not in self.root.nexts or not self.root.nexts[one].tokens]


class _State:
    """A state: its position in the language and, once it was reached, its tokens with the state after each."""

    __slots__ = ("allowed", "forced", "leads", "position")

    def __init__(self, position: Position) -> None:
        self.position = position
        self.allowed = _NO_TOKENS
        self.forced = -1
        self.leads: dict[int, int] | None = None


class _Steps(Sequence[_State]):
    """The states so far; one that is asked for is worked out first."""

    def __init__(self, grammar: "LanguageGrammar") -> None:
        self._grammar = grammar

    def __len__(self) -> int:
        return self._grammar.num_states

    def __getitem__(self, at: int) -> _State:  # type: ignore[override]
        return self._grammar.reached(at)


class LanguageGrammar:
    """Implements `TokenAutomaton`. `done` follows the end token, which is forced where nothing else may come."""

    start, done, is_flat = 0, -1, False

    def __init__(self, part: Part, texts: TokenTexts, end: int, max_tokens: int) -> None:
        if texts.lacks:
            raise InvalidInput(
                f"the vocabulary has no token for {texts.lacks[0]!r} alone: its model cannot write every document"
            )
        self.max_tokens = max_tokens
        self._texts, self._end = texts, end
        self._states: list[_State] = []
        self._numbers: dict[Position, int] = {}
        self._letters: dict[tuple[int, str], int] = {}
        self.steps = _Steps(self)
        self._number(start(part))

    @property
    def num_states(self) -> int:
        return len(self._states)

    def bounded(self, max_tokens: int) -> "LanguageGrammar":
        """The same grammar, its states shared, with another bound."""
        other = object.__new__(LanguageGrammar)
        other.__dict__.update(self.__dict__)
        other.max_tokens = max_tokens
        return other

    def reached(self, state: int) -> _State:
        """A state with its tokens."""
        found = self._states[state]
        if found.leads is None:
            leads: dict[int, int] = {}
            self._walk(state, self._texts.root, leads)
            if found.position.may_end:
                leads[self._end] = self.done
            found.leads = leads
            found.allowed = AllowedTokens.of(np.array(sorted(leads), np.int64))
            found.forced = self._end if set(leads) == {self._end} else -1
        return found

    def advance(self, state: int, token: int) -> int:
        after = None if state == self.done else (self.reached(state).leads or {}).get(token)
        if after is None:
            raise IntegrityError(f"token {token} is not allowed at this position of its grammar")
        return after

    def allows(self, state: int, token: int) -> bool:
        return state != self.done and token in (self.reached(state).leads or {})

    def transitions(self, state: int) -> tuple[Ids, Ids]:
        leads = self.reached(state).leads or {}
        ids = np.array(sorted(leads), np.int64)
        return ids, np.array([leads[token] for token in ids.tolist()], np.int64)

    def forced(self, state: int) -> tuple[list[int], int]:
        if state != self.done and self.reached(state).forced >= 0:
            return [self._end], self.done
        return [], state

    def fields(self, tokens: Sequence[int]) -> dict[str, str]:
        return {"text": self._texts.tokenizer.decode([token for token in tokens if token != self._end])}

    def fields_so_far(self, tokens: Sequence[int]) -> dict[str, str]:
        return self.fields(tokens)

    def _walk(self, state: int, branch: _Branch, leads: dict[int, int]) -> None:
        """The tokens whose texts may follow a state, each with the state after it."""
        waiting = [(state, branch)]
        while waiting:
            at, here = waiting.pop()
            for token in here.tokens:
                leads[token] = at
            for character, after in here.nexts.items():
                next_state = self._after(at, character)
                if next_state != _DEAD:
                    waiting.append((next_state, after))

    def _after(self, state: int, character: str) -> int:
        known = self._letters.get((state, character))
        if known is None:
            position = step(self._states[state].position, character)
            known = _DEAD if not position.ways and not position.may_end else self._number(position)
            self._letters[state, character] = known
        return known

    def _number(self, position: Position) -> int:
        number = self._numbers.setdefault(position, len(self._states))
        if number == len(self._states):
            self._states.append(_State(position))
        return number
