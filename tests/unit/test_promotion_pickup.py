"""A running service follows the pointer: the promoted draft, or the one before where that is not whole."""

import shutil
from pathlib import Path

import pytest

from htfi.decoding.promotion import POINTER, PromotedDraftSource, promote, read_promoted
from htfi.domain.errors import InvalidInput
from htfi.wiring.models.loading import open_like, open_model
from random_pair import write_random_pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_random_pair(tmp_path_factory.mktemp("pair"))


class Service:
    """Drafts in a folder, and a service that began with one of them."""

    def __init__(self, pair: tuple[Path, Path], folder: Path) -> None:
        self.pair, self.drafts = pair, folder / "drafts"
        self.drafts.mkdir()
        self.said: list[str] = []
        self.first = open_model(pair[1], "int8")
        self.draft = PromotedDraftSource(self.drafts, self.first, open_like, self.said.append)

    def promote(self) -> Path:
        candidate = self.drafts / ".candidate"
        shutil.copytree(self.pair[0], candidate)
        return promote(self.drafts, candidate, self.first.folder.digest, (0.9, 0.95))


@pytest.fixture
def service(pair: tuple[Path, Path], tmp_path: Path) -> Service:
    return Service(pair, tmp_path)


def test_the_first_draft_stays_until_another_is_promoted_then_that_one_is_current(service: Service) -> None:
    assert service.draft.current() is service.first
    folder = service.promote()
    found = service.draft.current()
    assert found.folder.path == folder
    assert found.folder.digest == open_model(service.pair[0], "int8").folder.digest
    assert service.draft.current() is found
    assert not service.said
    assert not (service.drafts / ".candidate").exists()


def test_what_was_promoted_tells_whom_it_replaced_and_by_how_much(service: Service) -> None:
    assert read_promoted(service.drafts) is None
    folder = service.promote()
    promoted = read_promoted(service.drafts)
    assert promoted is not None
    assert (promoted.folder, promoted.replaced) == (folder.name, service.first.folder.digest)
    assert promoted.acceptance == (0.9, 0.95)


def test_the_same_draft_promoted_twice_is_one_folder(service: Service) -> None:
    assert service.promote() == service.promote()
    assert sorted(path.name for path in service.drafts.iterdir())[1:] == [POINTER]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "is damaged"),
        (b'{"folder": "none", "digest": "", "replaced": "", "acceptance": [0, 1]}', "is not a folder"),
        (b'{"folder": "../x", "digest": "", "replaced": "", "acceptance": [0, 1]}', "not a folder beside it"),
    ],
)
def test_a_pointer_that_leads_nowhere_is_told_once_and_the_old_draft_stays(
    service: Service, content: bytes, says: str
) -> None:
    (service.drafts / POINTER).write_bytes(content)
    for _ in range(3):
        assert service.draft.current() is service.first
    assert len(service.said) == 1
    assert says in service.said[0]
    assert "\n" not in service.said[0]


def test_a_damaged_or_strange_draft_is_passed_over_and_a_good_one_is_taken_later(service: Service) -> None:
    folder = service.promote()
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert service.draft.current() is service.first
    assert "was changed after it was promoted" in service.said[0]
    good = service.promote()
    assert service.draft.current().folder.path == good
    assert len(service.said) == 1


def test_a_draft_of_another_vocabulary_is_passed_over(service: Service) -> None:
    candidate = service.drafts / ".other"
    shutil.copytree(service.pair[0], candidate)
    text = (candidate / "tokenizer.json").read_text()
    (candidate / "tokenizer.json").write_text(text.replace("<h6>", "<h7>"))
    promote(service.drafts, candidate, "", (0.9, 0.95))
    assert service.draft.current() is service.first
    assert "another tokenizer" in service.said[0]


def test_a_pointer_with_a_path_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / POINTER).write_bytes(b'{"folder": "a/b", "digest": "", "replaced": "", "acceptance": [0, 1]}')
    with pytest.raises(InvalidInput, match="not a folder beside it"):
        read_promoted(tmp_path)
