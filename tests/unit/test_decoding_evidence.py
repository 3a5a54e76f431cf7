"""What speculation did is counted, told, and missed when it stops: tokens a pass, acceptance by place, the alarm."""

import pytest

from htfi.decoding.acceptance_alarm import AcceptanceAlarm, AlarmConfig
from htfi.decoding.author import LocalAuthor
from htfi.decoding.config import DecodingConfig
from htfi.decoding.lookahead.plan import Fixed
from htfi.decoding.ports import Floats, Ids, Pass
from htfi.decoding.sessions import Sessions
from htfi.decoding.strategies.chain import Chain
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.writing import Fixed as FixedPart
from htfi.domain.writing import Form, Mark, Request, Text, Words, Writing
from tiny_network import TinyNetwork, TinyTokenizer

TOKENIZER = TinyTokenizer()
CONFIG = DecodingConfig(block_tokens=8, batch_bytes=2**22, cache_bytes=2**20)
FORM: Form = (FixedPart((Mark("view"),)), Words("words", 20, Mark("end")), FixedPart((Mark("/view"),)))


class Draft(TinyNetwork):
    """The target's own weights, until they are exchanged for another's or cannot be reached."""

    def __init__(self) -> None:
        super().__init__(TOKENIZER.vocab_size, seed=0)
        self.other: TinyNetwork | None = None
        self.is_lost = False

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> Pass:
        if self.is_lost:
            raise DependencyUnavailable("the draft is gone")
        if self.other is not None:
            return self.other.forward(ids, positions, mask, keys, values)
        return super().forward(ids, positions, mask, keys, values)


def speculating(draft: Draft, length: int = 4) -> LocalAuthor:
    target = TinyNetwork(TOKENIZER.vocab_size, seed=0)
    alarm = AcceptanceAlarm(AlarmConfig(warm_rounds=60))
    chain = Chain(Sessions(draft, CONFIG))
    return LocalAuthor(
        target, TOKENIZER, "tiny", CONFIG, strategy=chain, lookahead=Fixed(length), alarm=alarm
    )


def request(seed: int) -> Request:
    return Request((Mark("news"), Text(" the price rose")), FORM, seed=seed, temperature=1.0, kind="words")


def written(author: LocalAuthor, first: int, num: int) -> list[Writing]:
    answers = author.write([request(seed) for seed in range(first, first + num)])
    assert all(isinstance(answer, Writing) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Writing)]


def test_counts_agree_with_the_rounds_of_the_answers():
    author = speculating(Draft())
    answers = written(author, 0, 12)
    told, rounds = author.evidence, [one for answer in answers for one in answer.rounds]
    assert told.num_answers == 12
    assert told.num_tokens == sum(len(answer.tokens) for answer in answers)
    assert told.num_passes == len(rounds)
    assert sum(told.stood) <= sum(len(one.accepted) for one in rounds)  # forced tokens are not counted
    assert told.offered == sorted(told.offered, reverse=True)
    assert told.stood == sorted(told.stood, reverse=True)
    assert told.draft_ms > 0.0
    assert told.verify_ms > 0.0
    assert told.joules(10.0) == pytest.approx((told.draft_ms + told.verify_ms) / 100.0)
    assert author.spoken.acceptance == told.acceptance > 0.9


def test_a_draft_that_is_exchanged_raises_the_alarm_and_changes_no_answer():
    draft = Draft()
    author, plain = (
        speculating(draft),
        LocalAuthor(TinyNetwork(TOKENIZER.vocab_size, 0), TOKENIZER, "t", CONFIG),
    )
    written(author, 0, 120)
    assert author.spoken.alarm == ""
    draft.other = TinyNetwork(TOKENIZER.vocab_size, seed=9)
    answers = written(author, 1_000, 60)
    assert "below its usual range" in author.spoken.alarm
    assert [answer.tokens for answer in answers] == [answer.tokens for answer in written(plain, 1_000, 60)]


def test_a_draft_that_is_lost_costs_time_and_no_answer():
    draft = Draft()
    author, plain = (
        speculating(draft),
        LocalAuthor(TinyNetwork(TOKENIZER.vocab_size, 0), TOKENIZER, "t", CONFIG),
    )
    written(author, 0, 2)
    draft.is_lost = True
    lost = written(author, 2, 5)
    assert [answer.tokens for answer in lost] == [answer.tokens for answer in written(plain, 2, 5)]
    assert all(not one.drafted for answer in lost for one in answer.rounds)
    draft.is_lost = False
    back = written(author, 7, 2)
    assert any(one.drafted for answer in back for one in answer.rounds)
