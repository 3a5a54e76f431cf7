"""A tiny run learns, resumes to the same bit, withstands signals and bad disks, and leaves folders that open."""

import os
import signal
import sys
import threading
from pathlib import Path

import msgspec
import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from htfi.adapters.torch.llama import load_llama
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.domain import files
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput, MissingExtra
from htfi_train.torch import checkpoints as saving
from htfi_train.torch.batches import BatchLoader, BatchPosition, StorySource, make_batches
from htfi_train.torch.config import LlamaSizes, TrainingConfig, learning_rate_share
from htfi_train.torch.pair import TargetDraftPair, _scores
from htfi_train.torch.training import TrainingResult, train
from htfi_train.trainer import train_models
from training_stories import SOURCE, VOCAB, write_tokenizer

TINY = TrainingConfig(
    target=LlamaSizes(
        hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, intermediate=64, max_positions=64
    ),
    draft=LlamaSizes(hidden=16, layers=1, heads=2, kv_heads=1, head_dim=8, intermediate=32, max_positions=64),
    tokens=40_000,
    batch_tokens=512,
    target_rate=5e-3,
    draft_rate=8e-3,
    pool=64,
    threads=1,
    parts=2,
    device="cpu",
    log_every_s=0.0,
)


def _train(out: Path, config: TrainingConfig, report: object = None, source: str = SOURCE) -> TrainingResult:
    out.mkdir(exist_ok=True)
    file = write_tokenizer(out / "tokenizer.json")
    lines: list[str] = []
    return train(config, out, StorySource(source, str(file)), VOCAB, report or lines.append)  # type: ignore[arg-type]


def _weights(out: Path) -> dict[str, torch.Tensor]:
    state = torch.load(out / saving.CHECKPOINT, weights_only=True)
    return {f"{part}.{name}": value for part in ("target", "draft") for name, value in state[part].items()}


def _log(out: Path) -> list[dict[str, float]]:
    return [msgspec.json.decode(line) for line in (out / saving.LOG).read_bytes().splitlines()]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrainingResult]:
    """The folder of a whole training, and how it ended. Only read it."""
    folder = tmp_path_factory.mktemp("trained")
    return folder, _train(folder, TINY)


@pytest.mark.slow
def test_both_models_learn_and_come_to_agree(trained: tuple[Path, TrainingResult]) -> None:
    folder, result = trained
    measured = [line for line in _log(folder) if "target_ce_path" in line]
    first, last = measured[0], measured[-1]
    assert result.finished
    assert result.tokens >= 40_000
    for name in ("target_ce_path", "draft_ce_path", "target_ce_view", "draft_ce_view"):
        assert last[name] < 0.4 * first[name], name
    # At first both say the same nothing; then the target runs ahead, and at last the draft has followed.
    agreement = [line["agreement_path"] for line in measured]
    assert sum(agreement[-8:]) / 8 > max(0.65, min(agreement) + 0.15)
    assert {"target_ce_text", "target_ce_prices", "draft_kl_view", "tokens_per_s"} <= last.keys()


def test_folders_open_in_ours_and_in_transformers_with_the_logits_they_were_trained_to(
    tmp_path: Path,
) -> None:
    transformers = pytest.importorskip("transformers")
    _train(tmp_path, msgspec.structs.replace(TINY, tokens=3_000))
    pair = TargetDraftPair(TINY, VOCAB, torch.device("cpu"))
    saving.load_checkpoint(tmp_path, pair, VOCAB)
    ids = torch.arange(24).reshape(2, 12)
    for name, network in ((saving.TARGET_FOLDER, pair.target), (saving.DRAFT_FOLDER, pair.draft)):
        folder = ModelFolder.open(tmp_path / name)
        assert folder.tokenizer_file.is_file()
        card = msgspec.json.decode((tmp_path / name / "card.json").read_bytes())
        assert card["tokens"] >= 3_000
        assert card["largest_logit_change_by_rounding"] < 0.01
        loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path / name, dtype=torch.float32)
        with torch.no_grad():
            ours = network.hidden(ids) @ network.head.T
            theirs = loaded(ids).logits
        assert (ours - theirs).abs().max() < 0.01  # float16 storage
        exact = {key: value.half().float() for key, value in network.state_dict().items()}
        network.load_state_dict(exact)
        with torch.no_grad():
            rounded = network.hidden(ids) @ network.head.T
        assert torch.allclose(rounded, theirs, atol=1e-5)


def test_a_resumed_run_ends_with_the_same_weights_as_one_that_was_never_interrupted(tmp_path: Path) -> None:
    config = msgspec.structs.replace(TINY, tokens=9_000)
    _train(tmp_path / "whole", config)

    def interrupt_at_step_7(line: str) -> None:
        if "step 7 " in line:
            signal.raise_signal(signal.SIGTERM)

    stopped = _train(tmp_path / "cut", config, interrupt_at_step_7)
    assert not stopped.finished
    assert stopped.step == 7
    assert ModelFolder.open(tmp_path / "cut" / saving.TARGET_FOLDER).architecture.vocab_size == VOCAB
    assert _train(tmp_path / "cut", config).finished
    whole, resumed = _weights(tmp_path / "whole"), _weights(tmp_path / "cut")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    steps = [line["step"] for line in _log(tmp_path / "cut")]
    assert steps == sorted(set(steps))


def test_the_number_of_threads_changes_no_bit(tmp_path: Path) -> None:
    for threads in (1, 2):
        _train(tmp_path / str(threads), msgspec.structs.replace(TINY, tokens=3_000, threads=threads))
    one, two = _weights(tmp_path / "1"), _weights(tmp_path / "2")
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_checkpoint_of_other_settings_or_a_damaged_one_is_refused_in_a_line(tmp_path: Path) -> None:
    config = msgspec.structs.replace(TINY, tokens=600)
    _train(tmp_path, config)
    with pytest.raises(InvalidInput, match="other sizes, seed, batches or vocabulary"):
        _train(tmp_path, msgspec.structs.replace(config, seed=1))
    path = tmp_path / saving.CHECKPOINT
    path.write_bytes(path.read_bytes()[:5_000])
    with pytest.raises(InvalidInput, match="damaged: remove it"):
        _train(tmp_path, config)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(
        DependencyUnavailable,
        match="cannot be written: Not a directory; free some disk space or name another",
    ):
        train(TINY, tmp_path / "file" / "out", StorySource(SOURCE, "none"), VOCAB, print)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *, private: bool = True) -> int:
        assert path.name.startswith(saving.CHECKPOINT)
        return os.open("/dev/full", os.O_WRONLY)

    monkeypatch.setattr(files, "open_new", full)
    with pytest.raises(
        DependencyUnavailable, match=r"checkpoint.pt cannot be written: No space left on device"
    ):
        _train(tmp_path, msgspec.structs.replace(TINY, tokens=600))


@pytest.mark.parametrize(
    ("function", "kind", "says"),
    [
        ("training_stories:dry", InvalidInput, "ended: it must be endless"),
        ("training_stories:refusing", InvalidInput, "these stories are refused"),
        ("training_stories:dying", DependencyUnavailable, "ended early"),
        ("training_stories:none", InvalidInput, "cannot be found"),
        ("no_such_module:stories", InvalidInput, "cannot be found"),
    ],
)
def test_a_source_that_fails_is_one_line(
    tmp_path: Path, function: str, kind: type[HtfiError], says: str
) -> None:
    with pytest.raises(kind, match=says):
        _train(tmp_path, TINY, source=function)


def test_an_unknown_device_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="device 'abacus' is not available here"):
        _train(tmp_path, msgspec.structs.replace(TINY, device="abacus"))


def test_without_torch_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"training needs torch.*pip install 'htfi\[train\]'"):
        train_models(TINY, tmp_path)


def test_batches_go_on_from_a_place_as_if_never_left() -> None:
    source = StorySource(SOURCE, "")

    def some(place: BatchPosition, count: int) -> list[tuple[np.ndarray, BatchPosition]]:
        with BatchLoader(
            source, seed=3, workers=2, pool=64, batch_tokens=256, longest=64, place=place
        ) as batches:
            return [(batch.ids, after) for batch, after in (next(batches) for _ in range(count))]

    whole = some(BatchPosition(), 14)
    assert whole[-1][1].pool > 0
    resumed = some(whole[8][1], 5)
    for (ids, after), (ids_again, after_again) in zip(whole[9:], resumed, strict=True):
        assert after == after_again
        assert np.array_equal(ids, ids_again)
    assert threading.active_count() == 1 or not any(t.name == "htfi-batches" for t in threading.enumerate())


def test_every_token_of_a_pool_is_in_one_batch_and_none_is_longer_than_allowed() -> None:
    stories = [([7] * n, [1.0] * n, [1] * n) for n in (5, 40, 17, 18, 3, 100)]
    batches = make_batches(stories, batch_tokens=128, longest=64, seed=(0, 0))
    assert sum(batch.tokens for batch in batches) == 5 + 40 + 17 + 18 + 3 + 64
    assert all(batch.ids.shape[1] <= 64 for batch in batches)
    assert sum(len(batch.ids) for batch in batches) == len(stories)
    assert all(batch.weights[:, 0].max() == 0 for batch in batches)


def test_written_gradients_are_those_of_the_losses() -> None:
    draw = torch.Generator().manual_seed(0)
    target = torch.randn(50, 9, generator=draw, requires_grad=True)
    draft = torch.randn(50, 9, generator=draw, requires_grad=True)
    truth = torch.randint(9, (50,), generator=draw)
    weights = torch.rand(50, generator=draw)
    (to_target, to_draft), sums = _scores(target, draft, truth, weights, truth % 5, 0.7, True)
    log_p, log_q = target.log_softmax(-1), draft.log_softmax(-1)
    rows = torch.arange(50)
    learns = (weights * -log_p[rows, truth]).sum()
    taught = torch.nn.functional.kl_div(log_q, log_p.detach(), reduction="none", log_target=True).sum(-1)
    follows = (weights * (0.7 * taught + 0.3 * -log_q[rows, truth])).sum()
    (learns + follows).backward()
    assert torch.allclose(to_target, target.grad, atol=1e-6)  # type: ignore[arg-type]
    assert torch.allclose(to_draft, draft.grad, atol=1e-6)  # type: ignore[arg-type]
    assert sums[0].sum() == 50
    assert torch.isclose(sums[3].sum().float(), taught.sum(), atol=1e-4)


def test_the_rate_rises_stays_and_falls_with_the_budget() -> None:
    config = TrainingConfig(warmup=0.1, decay=0.5, floor=0.05)
    assert 0 < learning_rate_share(config, 0.0) < 0.01
    assert learning_rate_share(config, 0.1) == learning_rate_share(config, 0.5) == 1.0
    assert learning_rate_share(config, 0.75) == pytest.approx(0.525)
    assert learning_rate_share(config, 1.0) == learning_rate_share(config, 1.2) == pytest.approx(0.05)


@pytest.mark.parametrize(
    "wrong",
    [
        {"minutes": 0},
        {"tokens": 0},
        {"decay": 1.0},
        {"parts": 0},
        {"draft": LlamaSizes(8, 1, 2, 1, 4, 8, 32)},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        TrainingConfig(**wrong)  # type: ignore[arg-type]


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInput, match="heads a multiple of kv_heads"):
        LlamaSizes(hidden=32, layers=1, heads=3, kv_heads=2, head_dim=8, intermediate=8)


def test_a_pair_goes_on_from_another_with_more_tokens(trained: tuple[Path, TrainingResult]) -> None:
    one, _ = trained
    begin = tuple(ModelFolder.open(one / name) for name in ("mini-target", "mini-draft"))
    pair = TargetDraftPair(TINY, VOCAB + 3, torch.device("cpu"))
    pair.start_from(*map(load_llama, begin))
    ids = torch.arange(24).reshape(2, 12)
    for network, folder in ((pair.target, begin[0]), (pair.draft, begin[1])):
        was = load_llama(folder)
        with torch.no_grad():
            before, now = was.hidden(ids), network.hidden(ids)
            assert torch.equal(now, before)
            assert torch.equal((now @ network.head.T)[..., :VOCAB], before @ was.head.T)
            fresh = network.head[VOCAB:]
            assert len({tuple(row) for row in fresh.tolist()}) == 3
            assert fresh.std() < 2 * was.head.std()
    wide = TargetDraftPair(TINY, VOCAB - 1, torch.device("cpu"))
    with pytest.raises(InvalidInput, match="tokens that the vocabulary lacks"):
        wide.start_from(*map(load_llama, begin))
    with pytest.raises(InvalidInput, match="other sizes"):
        pair.start_from(*map(load_llama, begin[::-1]))


@pytest.mark.slow
def test_a_run_that_starts_from_a_pair_is_better_at_once_and_resumes(
    trained: tuple[Path, TrainingResult], tmp_path: Path
) -> None:
    one, _ = trained
    begin = tuple(ModelFolder.open(one / name) for name in ("mini-target", "mini-draft"))
    file = write_tokenizer(tmp_path / "tokenizer.json")
    (tmp_path / "two").mkdir()
    short = msgspec.structs.replace(TINY, tokens=2_000)

    def go_on(config: TrainingConfig) -> TrainingResult:
        source = StorySource(SOURCE, str(file))
        return train(config, tmp_path / "two", source, VOCAB, lambda _: None, start_from=begin)  # type: ignore[arg-type]

    go_on(short)
    fresh, further = _log(one)[0], _log(tmp_path / "two")[0]
    assert further["target_ce_view"] < 0.7 * fresh["target_ce_view"]
    step = _log(tmp_path / "two")[-1]["step"]
    assert go_on(msgspec.structs.replace(short, tokens=4_000)).step > step
    assert _log(tmp_path / "two")[-1]["tokens"] >= 4_000
