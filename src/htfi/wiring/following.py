"""Authors around an author, for a service that goes on learning: one takes up promoted drafts, one remembers what was
said. Wiring puts them around the speculative author; neither changes an answer.
"""

from collections.abc import Callable, Sequence

from htfi.adapters.stores.recent_answers import RecentAnswers
from htfi.decoding.replay_buffer import Said
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.writing import Dialect, Refusal, Request, Spoken, Writing
from htfi.narrative.ports import Author
from htfi.wiring.open_folder import OpenFolder
from htfi.wiring.promotion import PromotedDraft


class _Around:
    """What an author says of itself, told by one around it."""

    _author: Author

    @property
    def version(self) -> str:
        return self._author.version

    @property
    def dialect(self) -> Dialect:
        return self._author.dialect

    @property
    def spoken(self) -> Spoken | None:
        return self._author.spoken


class FollowingAuthor(_Around):
    """The author that `build` makes of the current draft, made anew between requests when another is promoted.

    Where that fails the one before goes on, and `report` is told once. Raises what `build` raises for the first.
    """

    def __init__(
        self, promoted: PromotedDraft, build: Callable[[OpenFolder], Author], report: Callable[[str], None]
    ) -> None:
        self._promoted = promoted
        self._build = build
        self._report = report
        self._draft = promoted.current()
        self._author = build(self._draft)

    def write(self, requests: Sequence[Request]) -> list[Writing | Refusal]:
        """One answer per request, in order."""
        draft = self._promoted.current()
        if draft is not self._draft:
            self._draft = draft  # one that cannot be loaded is not tried at every request
            try:
                self._author = self._build(draft)
            except (DependencyUnavailable, InvalidInput) as error:
                self._report(f"promoted draft {draft.version} cannot be used, the one before stays: {error}")
        return self._author.write(requests)


class RememberingAuthor(_Around):
    """An author whose writings go into a replay buffer, for `htfi models distil`. `tokenizer` is its digest.

    Where the buffer cannot be written, `report` is told once of each reason, and answers go on.
    """

    def __init__(
        self, author: Author, recent: RecentAnswers, tokenizer: str, report: Callable[[str], None]
    ) -> None:
        self._author = author
        self._recent = recent
        self._tokenizer = tokenizer
        self._report = report
        self._trouble = ""

    def write(self, requests: Sequence[Request]) -> list[Writing | Refusal]:
        """One answer per request, in order."""
        answers = self._author.write(requests)
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, Writing) and answer.tokens:
                self._recent.add(Said(request, answer.tokens, self._author.version, self._tokenizer))
        if self._recent.trouble != self._trouble:
            self._trouble = self._recent.trouble
            self._report(f"{self._trouble}: what is answered is not kept for distilling")
        return answers
