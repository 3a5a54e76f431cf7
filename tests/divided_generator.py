"""A target whose answers the link delays, over a real pair: for tests of what is recorded of late readings."""

import random
from collections.abc import Sequence

from msgspec.structs import replace

from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from htfi.wiring.models.loading import LoadableModel
from htfi.wiring.settings import Settings


class Divided:
    """A target whose answers are cut short by dice and finished by the draft; the whole ones come some polls later."""

    speculation_stats = None

    def __init__(self, target: LoadableModel, draft: LoadableModel, settings: Settings, seed: int) -> None:
        self.version = target.version
        self._draft_version = draft.version
        self._target = target.plain_generator(settings.decoding)
        self._draft = draft.plain_generator(settings.decoding)
        self.dialect = self._target.dialect
        self._dice = random.Random(seed)
        self._late: dict[str, tuple[int, Completion]] = {}

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        return [
            self._answer(request, whole)
            for request, whole in zip(requests, self._target.write(requests), strict=True)
        ]

    def _answer(
        self, request: GenerationRequest, whole: Completion | RequestRefused
    ) -> Completion | RequestRefused:
        assert isinstance(whole, Completion)
        whole = replace(whole, place="cloud1, in flight")
        if self._dice.random() < 0.4:
            return replace(whole, rounds=whole.rounds[: self._dice.randrange(len(whole.rounds) + 1)])
        num_verified = self._dice.randrange(len(whole.tokens))
        mixed = self._draft.continue_from(whole.prompt, request, whole.tokens[:num_verified])
        assert isinstance(mixed, Completion)
        self._late[request.id] = (self._dice.randrange(5), whole)
        return replace(
            mixed, draft=self._draft_version, rounds=(), place="edge alone, late", num_verified=num_verified
        )

    def take_late_completions(self) -> list[tuple[str, Completion | RequestRefused]]:
        due = [name for name, (left, _) in self._late.items() if left == 0]
        found: list[tuple[str, Completion | RequestRefused]] = [
            (name, self._late.pop(name)[1]) for name in due
        ]
        self._late = {name: (left - 1, whole) for name, (left, whole) in self._late.items()}
        return found

    def request_completions(self, requests: Sequence[GenerationRequest]) -> None:
        assert not requests
