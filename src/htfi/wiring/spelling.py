"""A model's tokens as words, for those who read its record: `htfi ledger audit` and the report ask for them."""

from collections.abc import Callable
from pathlib import Path

from htfi import models
from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import Wording
from htfi.domain.errors import HtfiError, InvalidInput
from htfi.wiring.told_rounds import Words


def spelling(wording: Wording, named: Path | None = None) -> Callable[[int], str] | None:
    """What tokens of a wording say, by the vocabulary of the model that wrote it: that of the folder `named`, or a
    shipped one; None where neither is at hand, for a record can be read without its models.

    Raises: InvalidInput where the named folder holds another model.
    """
    digest = wording.target.rpartition("@")[2]
    for path in (named,) if named is not None else (models.TARGET, models.DRAFT):
        try:
            folder = ModelFolder.open(path)
            if digest and folder.digest.startswith(digest):
                return Words.of(Vocabulary(HuggingFaceTokenizer(folder.tokenizer_file)))
        except HtfiError:
            if named is not None:
                raise
    if named is not None:
        raise InvalidInput(f"{named} does not hold {wording.target}, which wrote this: name its folder")
    return None
