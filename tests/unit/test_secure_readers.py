"""Who reads under suspicion: the target without drafting; where it is late, nobody else speaks in its place."""

from collections.abc import Sequence

from htfi.domain.decision import FidelityPlan, Rung
from htfi.domain.events import News
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.ports import LateNewsReader
from htfi.narrative.question import Question, question_id
from htfi.narrative.readers import ModelReader, SecureReader
from htfi.pipeline.view_cache import ReadRequest, ViewCache
from late_network import LateAuthor

ITEMS = (News(0, 0, "wire", 1, "n1", "A headline", ("A",)),)
QUESTION = Question("A", NS_PER_DAY, NS_PER_DAY, ITEMS)


class Author(LateAuthor):
    """One that is always late, or never."""

    def __init__(self, *, is_late: bool) -> None:
        super().__init__(1, late_share=1.0 if is_late else 0.0, same_share=0.0)
        self.pursuits: list[GenerationRequest] = []

    def request_completions(self, requests: Sequence[GenerationRequest]) -> None:
        self.pursuits += requests
        super().request_completions(requests)

    def take_late_completions(self) -> list[tuple[str, Completion | RequestRefused]]:
        self._under_way = dict.fromkeys(self._under_way, 0)
        return super().take_late_completions()


def pair(*, is_late: bool) -> tuple[ModelReader, SecureReader, Author]:
    author = Author(is_late=is_late)
    linked = ModelReader(author)
    return linked, SecureReader(linked), author


def test_it_opts_out_of_speculation_and_the_other_rung_does_not() -> None:
    linked, secure, author = pair(is_late=False)
    secure.read([QUESTION], 80.0)
    linked.read([QUESTION], 80.0)
    assert [request.max_draft for request in author.written] == [0, None]


def test_in_time_the_view_is_the_targets_own() -> None:
    linked, secure, _ = pair(is_late=False)
    assert secure.read([QUESTION], 80.0) == linked.read([QUESTION], 80.0)
    assert secure.version == linked.version


def test_what_a_draft_wrote_is_not_said_and_the_targets_own_comes_late() -> None:
    linked, secure, _ = pair(is_late=True)
    (view,) = secure.read([QUESTION], 80.0)
    assert view.provisional
    assert view.confidence == 0.0
    assert view.trace is None
    assert view.words == ""
    ((name, late),) = linked.take_late_views()
    assert name == question_id(QUESTION)
    assert not isinstance(late, RequestRefused)
    assert not late.provisional
    assert secure.take_late_views() == []


def test_after_a_crash_it_pursues_without_speculation() -> None:
    _, secure, author = pair(is_late=True)
    assert isinstance(secure, LateNewsReader)
    secure.request_views([QUESTION])
    assert [request.max_draft for request in author.pursuits] == [0]


def test_a_view_read_before_suspicion_does_not_serve_it_and_one_read_under_it_serves_afterwards() -> None:
    linked, secure, author = pair(is_late=False)
    readings = ViewCache({Rung.SPECULATIVE: linked, Rung.SECURE: secure}, 8)
    for rung, num in ((Rung.SPECULATIVE, 1), (Rung.SECURE, 2), (Rung.SECURE, 2), (Rung.SPECULATIVE, 2)):
        readings.read([ReadRequest("A/1d", QUESTION, FidelityPlan(rung, "", 80.0))])
        assert len(author.written) == num


def test_a_suspected_series_awaits_its_turn_until_it_is_read_under_suspicion() -> None:
    linked, secure, _ = pair(is_late=False)
    readings = ViewCache({Rung.SPECULATIVE: linked, Rung.SECURE: secure}, 8)
    gathered = [("A/1d", QUESTION)]
    readings.read([ReadRequest("A/1d", QUESTION, FidelityPlan(Rung.SPECULATIVE, "", 80.0))])
    assert readings.reading_order(gathered) == []
    assert readings.reading_order(gathered, {0: 1.0}) == [0]
    readings.read([ReadRequest("A/1d", QUESTION, FidelityPlan(Rung.SECURE, "", 80.0))])
    assert readings.reading_order(gathered, {0: 1.0}) == []
