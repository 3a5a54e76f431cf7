"""What speculation did is counted, told, and missed when it stops: tokens a pass, acceptance by place, the alarm."""

from htfi.decoding.acceptance import AcceptanceAlarm, AcceptanceAlarmConfig
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.planner import FixedLengthPlanner
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import Floats, ForwardOutput, Ids
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.generation import (
    Completion,
    ControlToken,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
)
from htfi.domain.generation import FixedField as FixedPart
from tiny_network import TinyNetwork, TinyTokenizer

TOKENIZER = TinyTokenizer()
CONFIG = DecodingConfig(block_tokens=8, batch_bytes=2**22, cache_bytes=2**20)
FORM: OutputGrammar = (
    FixedPart((ControlToken("view"),)),
    FreeTextField("words", 20, ControlToken("end")),
    FixedPart((ControlToken("/view"),)),
)


class Draft(TinyNetwork):
    """The target's own weights, until they are exchanged for another's or cannot be reached."""

    def __init__(self) -> None:
        super().__init__(TOKENIZER.vocab_size, seed=0)
        self.other: TinyNetwork | None = None
        self.is_lost = False

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        if self.is_lost:
            raise DependencyUnavailable("the draft is gone")
        if self.other is not None:
            return self.other.forward(ids, positions, mask, keys, values)
        return super().forward(ids, positions, mask, keys, values)


def speculating(draft: Draft, length: int = 4) -> LocalGenerator:
    target = TinyNetwork(TOKENIZER.vocab_size, seed=0)
    alarm = AcceptanceAlarm(AcceptanceAlarmConfig(warm_rounds=60))
    chain = ChainStrategy(KVSessions(draft, CONFIG))
    return LocalGenerator(
        target,
        TOKENIZER,
        "tiny",
        CONFIG,
        strategy=chain,
        length_planner=FixedLengthPlanner(length),
        alarm=alarm,
    )


def request(seed: int) -> GenerationRequest:
    return GenerationRequest(
        (ControlToken("news"), PlainText(" the price rose")), FORM, seed=seed, temperature=1.0, kind="words"
    )


def written(author: LocalGenerator, first: int, num: int) -> list[Completion]:
    answers = author.write([request(seed) for seed in range(first, first + num)])
    assert all(isinstance(answer, Completion) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Completion)]


def test_counts_agree_with_the_rounds_of_the_answers():
    author = speculating(Draft())
    answers = written(author, 0, 12)
    told, rounds = author.counts, [one for answer in answers for one in answer.rounds]
    assert told.num_answers == 12
    assert told.num_tokens == sum(len(answer.tokens) for answer in answers)
    assert told.num_passes == len(rounds)
    assert sum(told.num_accepted_at) <= sum(
        len(one.accepted) for one in rounds
    )  # forced tokens are not counted
    assert told.num_drafted_at == sorted(told.num_drafted_at, reverse=True)
    assert told.num_accepted_at == sorted(told.num_accepted_at, reverse=True)
    assert told.draft_ms > 0.0
    assert told.verify_ms > 0.0
    assert author.speculation_stats.acceptance == told.acceptance > 0.9


def test_a_draft_that_is_exchanged_raises_the_alarm_and_changes_no_answer():
    draft = Draft()
    author, plain = (
        speculating(draft),
        LocalGenerator(TinyNetwork(TOKENIZER.vocab_size, 0), TOKENIZER, "t", CONFIG),
    )
    written(author, 0, 120)
    assert author.speculation_stats.alarm == ""
    draft.other = TinyNetwork(TOKENIZER.vocab_size, seed=9)
    answers = written(author, 1_000, 60)
    assert "below its usual range" in author.speculation_stats.alarm
    assert [answer.tokens for answer in answers] == [answer.tokens for answer in written(plain, 1_000, 60)]


def test_a_draft_that_is_lost_costs_time_and_no_answer():
    draft = Draft()
    author, plain = (
        speculating(draft),
        LocalGenerator(TinyNetwork(TOKENIZER.vocab_size, 0), TOKENIZER, "t", CONFIG),
    )
    written(author, 0, 2)
    draft.is_lost = True
    lost = written(author, 2, 5)
    assert [answer.tokens for answer in lost] == [answer.tokens for answer in written(plain, 2, 5)]
    assert all(not one.drafted for answer in lost for one in answer.rounds)
    draft.is_lost = False
    back = written(author, 7, 2)
    assert any(one.drafted for answer in back for one in answer.rounds)
