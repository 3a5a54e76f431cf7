"""`htfi models distil`: a draft that learns is promoted, one that does not is not, and bad input is one line."""

import signal
import sys
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from checks import nonempty

pytest.importorskip("torch")

import torch

from htfi.adapters.stores.replay_buffer import ReplayBufferFile
from htfi.apps.cli.main import cli
from htfi.decoding.config import DecodingConfig
from htfi.decoding.promotion import PromotedDraftSource, read_promoted
from htfi.decoding.replay_buffer import RecordedAnswer, RecordedPaths, ReplayRecord
from htfi.domain.errors import HtfiError, InvalidInput, MissingExtra
from htfi.wiring.models.config import ModelsConfig
from htfi.wiring.models.loading import open_like, open_model
from htfi_train.distillation import DistillationResult, distil_draft, parse_distil_config
from htfi_train.examples import examples_of, split_exchanges
from htfi_train.simulation.draft_questions import answer_requests, simulated_requests
from htfi_train.torch.config import DistilConfig
from htfi_train.torch.distillation import _scores
from htfi_train.torch.examples import ALL_TOKENS, AdmittedTokenSets, DistillationExample, example_batches
from random_pair import write_random_pair

QUICK = DistilConfig(tokens=30_000, batch_tokens=1_024, rate=1e-2, pool=64, log_every_s=0.0)
NUM_STORIES = 120


class Shop:
    """A pair of random models, and a buffer of what the target said."""

    def __init__(self, folder: Path) -> None:
        self.target, self.draft = write_random_pair(folder)
        self.pair = ModelsConfig(str(self.target), str(self.draft))
        self.buffer = folder / "buffer"
        opened = open_model(self.target, "int8")
        author = opened.plain_generator(DecodingConfig())
        asked = islice(simulated_requests(300_000_000, author.dialect), NUM_STORIES)
        self.exchanges = list(answer_requests(author, asked, opened.tokenizer.digest, 1, 6))
        self.write(self.buffer, self.exchanges)

    @staticmethod
    def write(folder: Path, exchanges: list[ReplayRecord]) -> Path:
        writer = ReplayBufferFile(folder)
        for exchange in exchanges:
            writer.add(exchange)
        writer.close()
        return folder

    def distil(
        self, out: Path, config: DistilConfig = QUICK, lines: list[str] | None = None
    ) -> DistillationResult:
        told = [] if lines is None else lines
        return distil_draft(config, self.buffer, self.pair, out, told.append, num_rehearsed=20)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def learnt(
    shop: Shop, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, DistillationResult, list[str]]:
    out, lines = tmp_path_factory.mktemp("drafts"), []
    return out, shop.distil(out, lines=lines), lines


@pytest.mark.slow
def test_a_draft_that_comes_to_say_what_its_target_says_is_promoted_whole(
    shop: Shop, learnt: tuple[Path, DistillationResult, list[str]]
) -> None:
    out, done, lines = learnt
    assert done.folder is not None, done.reason
    overall = done.rows[0].change
    assert overall.after > overall.before + 0.02
    assert overall.after > overall.before + 3 * overall.error
    promoted = read_promoted(out)
    assert promoted is not None
    assert out / promoted.folder == done.folder
    assert promoted.digest == open_model(done.folder, "int8").folder.digest
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []
    card = msgspec.json.decode((done.folder / "card.json").read_bytes())
    assert card["distilled_from"] == open_model(shop.target, "int8").folder.digest
    assert card["tokens"] == card["distillation"]["tokens"] >= QUICK.tokens
    assert card["data"].endswith("then answers of its target")
    assert {row.field for row in done.rows} >= {"", "answers", "paths", "words", "direction"}
    assert any("held back" in line for line in lines)
    assert any(" KL answers " in line for line in lines)


@pytest.mark.slow
def test_a_service_that_follows_the_folder_takes_the_draft_up(
    shop: Shop, learnt: tuple[Path, DistillationResult, list[str]]
) -> None:
    first = open_model(shop.draft, "int8")
    told: list[str] = []
    found = PromotedDraftSource(learnt[0], first, open_like, told.append).current()
    assert found.folder.path == learnt[1].folder
    assert not told
    author = found.plain_generator(DecodingConfig())
    (answer,) = author.write([next(simulated_requests(7, author.dialect))])
    assert hasattr(answer, "tokens")


@pytest.mark.slow
def test_the_same_budget_of_tokens_gives_the_same_bits(
    shop: Shop, learnt: tuple[Path, DistillationResult, list[str]], tmp_path: Path
) -> None:
    short = msgspec.structs.replace(QUICK, tokens=8_000)
    once, again = shop.distil(tmp_path / "once", short), shop.distil(tmp_path / "again", short)
    assert once.folder is not None, once.reason
    assert again.folder is not None
    weights = [(folder / "model.safetensors").read_bytes() for folder in (once.folder, again.folder)]
    assert weights[0] == weights[1]
    other = shop.distil(tmp_path / "other", msgspec.structs.replace(short, seed=1))
    assert other.folder is None or (other.folder / "model.safetensors").read_bytes() != weights[0]


def test_a_draft_that_learns_nothing_stays_unpromoted_and_leaves_nothing(shop: Shop, tmp_path: Path) -> None:
    done = shop.distil(tmp_path / "out", msgspec.structs.replace(QUICK, tokens=2_000, rate=1e-9))
    assert done.folder is None
    assert "no more than its error" in done.reason
    assert list((tmp_path / "out").iterdir()) == []


def test_what_is_held_back_is_never_learnt_from(shop: Shop) -> None:
    target = open_model(shop.target, "int8")
    draft = open_model(shop.draft, "int8").plain_generator(DecodingConfig())
    split = split_exchanges(shop.exchanges, target, draft)

    def news(exchange: ReplayRecord) -> tuple[int, ...]:
        if isinstance(exchange, RecordedPaths):
            return exchange.prefix[: exchange.shared]
        asked = draft.tokenize(exchange.request)
        assert hasattr(asked, "prompt")
        return tuple(asked.prompt[: asked.num_shared])

    learnt = {news(exchange) for exchange in split.training} - {news(shop.exchanges[0])[:0]}
    kept = {news(exchange) for exchange in split.held_back}
    long_enough = {ids for ids in kept if len(ids) >= 16}
    assert long_enough
    assert not learnt & long_enough
    assert len(split.training) + len(split.held_back) == len(shop.exchanges)


def test_lessons_hold_to_what_the_form_admitted(shop: Shop) -> None:
    author = open_model(shop.target, "int8").plain_generator(DecodingConfig())
    sets = AdmittedTokenSets(author.vocabulary.tokenizer.vocab_size)
    lessons = [lesson for exchange in shop.exchanges for lesson in examples_of(author, exchange, sets)]
    mask = sets.mask()
    for lesson in nonempty(lessons):
        for place, admitted in nonempty(zip(lesson.places, lesson.admitted, strict=True)):
            assert mask[admitted, lesson.ids[place]]
            assert 2 <= mask[admitted].sum() < mask.shape[1]


def test_exchanges_of_other_targets_or_forms_are_left_out(shop: Shop) -> None:
    target = open_model(shop.target, "int8")
    draft = open_model(shop.draft, "int8").plain_generator(DecodingConfig())
    said = next(exchange for exchange in shop.exchanges if isinstance(exchange, RecordedAnswer))
    drawn = next(exchange for exchange in shop.exchanges if isinstance(exchange, RecordedPaths))
    change = msgspec.structs.replace
    strange: list[ReplayRecord] = [
        change(said, target="target-int8@" + "0" * 12),
        change(said, tokenizer="0" * 64),
        change(said, tokens=(*said.tokens, 1)),
        change(said, tokens=(1, *said.tokens[1:])),
        change(drawn, bins=((10_000,),)),
        change(drawn, bins=((-1,),)),
        change(drawn, prefix=(99_999_999,)),
        change(drawn, prefix=drawn.prefix * 100),
    ]
    split = split_exchanges([*shop.exchanges, *strange], target, draft)
    assert (split.num_other_models, split.num_unusable) == (2, 6)
    assert len(split.training) + len(split.held_back) == len(shop.exchanges)


@pytest.mark.slow
def test_a_stopped_run_promotes_nothing(shop: Shop, tmp_path: Path) -> None:
    class Stopping(list[str]):
        def append(self, line: str) -> None:
            if "step 2 " in line:
                signal.raise_signal(signal.SIGINT)

    done = shop.distil(tmp_path, lines=Stopping())
    assert not done.finished
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_shows_a_table_and_its_exit_status_says_what_came_of_it(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htfi_train.distillation.NUM_SIMULATED_QUESTIONS", 20)
    told = ["models", "distil", "--from", str(shop.buffer), "--out", str(tmp_path / "drafts")]
    named = ["--target", str(shop.target), "--draft", str(shop.draft)]
    done = CliRunner().invoke(cli, [*told, *named, "--tokens", "12000", "--rate", "0.01"])
    assert done.exit_code == 0, done.output
    assert "promoted: " in done.output
    assert "direction" in done.output
    # The promoted draft is where the next run begins; one step at no rate changes nothing.
    again = CliRunner().invoke(cli, [*told, *named[:2], "--tokens", "1", "--rate", "1e-9"])
    assert again.exit_code == 3, again.output
    promoted = read_promoted(tmp_path / "drafts")
    assert promoted is not None
    assert f"drafts/{promoted.folder} stays" in "".join(again.output.split("\n"))


def test_bad_input_is_one_line(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**changed: object) -> str:
        said = {
            "buffer": shop.buffer,
            "models": shop.pair,
            "out": tmp_path / "out",
            "config": QUICK,
            **changed,
        }
        with pytest.raises(HtfiError) as error:
            distil_draft(report=lambda _: None, num_rehearsed=5, **said)  # type: ignore[arg-type]
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "holds no replay buffer" in refused(buffer=tmp_path)
    few = shop.write(tmp_path / "few", shop.exchanges[:10])
    assert "holds too little" in refused(buffer=few)
    (tmp_path / "file").write_bytes(b"")
    assert "cannot be written" in refused(out=tmp_path / "file" / "out")
    assert "is not a folder" in refused(models=ModelsConfig(str(tmp_path / "none"), str(shop.draft)))
    assert "device 'abacus'" in refused(config=msgspec.structs.replace(QUICK, device="abacus"))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"distilling needs torch.*pip install 'htfi\[train\]'"):
        shop.distil(tmp_path)


@pytest.mark.parametrize(
    "wrong", [{"minutes": 0.0}, {"tokens": 0}, {"rehearsal": 1.0}, {"rate": 0.0}, {"threads": 0}]
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        parse_distil_config(**wrong)


def test_batches_go_through_every_lesson_and_mix_in_rehearsal_the_same_way_each_time() -> None:
    lessons = [DistillationExample([1] * (4 + i % 9), [3], [1.0], [ALL_TOKENS], 1.0, i) for i in range(50)]

    def rehearsal() -> object:
        while True:
            yield DistillationExample([2] * 8, [3, 4], [0.1, 0.2], [ALL_TOKENS, ALL_TOKENS], 1.0, 99)

    def some() -> list[np.ndarray]:
        endless = example_batches(lessons, rehearsal(), share=0.5, pool=20, batch_tokens=64, seed=3)  # type: ignore[arg-type]
        found, tokens = [], 0
        while tokens < 2_000:
            batch = next(endless)
            assert batch.ids.size <= 64
            tokens += batch.tokens
            found.append(batch.kinds)
        return found

    once, again = some(), some()
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))
    kinds, counts = np.unique(np.concatenate(once), return_counts=True)
    assert kinds.tolist() == [*range(50), 99]
    assert counts[-1] / 2 == pytest.approx(counts[:-1].sum(), rel=0.1)  # two places each
    assert counts[:-1].max() - counts[:-1].min() <= 1


def test_the_written_gradient_is_that_of_the_divergence_over_what_was_admitted() -> None:
    draw = torch.Generator().manual_seed(0)
    wanted = torch.randn(40, 9, generator=draw)
    said = torch.randn(40, 9, generator=draw, requires_grad=True)
    admitted = torch.rand(40, 9, generator=draw) < 0.6
    admitted[:, 0] = True
    weights = torch.rand(40, generator=draw)
    temperatures = torch.tensor([0.0, 0.5, 1.0, 2.0]).repeat(10)
    hide = torch.where(admitted, 0.0, -1e9).flip(0)
    gradient, divergence = _scores(wanted, said, hide, torch.arange(40).flip(0), temperatures, weights)
    t = torch.where(temperatures > 0, temperatures, 1.0)[:, None]
    total = torch.zeros(())
    for row in range(40):
        ids = admitted[row].nonzero()[:, 0]
        p = (wanted[row, ids] / t[row]).log_softmax(-1)
        q = (said[row, ids] / t[row]).log_softmax(-1)
        kl = (p.exp() * (p - q)).sum()
        assert torch.isclose(divergence[row], kl, atol=1e-5)
        total = total + weights[row] * kl
    total.backward()
    assert torch.allclose(gradient, said.grad, atol=1e-6)  # type: ignore[arg-type]
