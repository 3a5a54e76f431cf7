"""The models that wrote a run's readings, by the versions that its entries name. The audit and the replay look here.

A model's tokens as words, for those who read its record: `htfi ledger audit` and the report ask for them.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from htfi import models
from htfi.adapters.tokenizer.hugging_face import HuggingFaceTokenizer
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import GenerationTrace
from htfi.domain.errors import HtfiError, InvalidInput
from htfi.pipeline.audit.readings import ReadingSettings, WeightlessModel
from htfi.wiring.draft_rounds import TokenText
from htfi.wiring.models.loading import LoadableModel, open_model
from htfi.wiring.models.readers import ModelsConfig, in_full_precision
from htfi.wiring.settings import Settings


class ModelsByVersion:
    """Folders that a person names, those of settings, and the shipped ones; opened when they are looked for.

    None of them is loaded.
    """

    def __init__(self, config: ModelsConfig, named: Sequence[Path] = ()) -> None:
        self._config = config
        settings = [Path(folder) for folder in (config.target, config.draft) if folder]
        self._paths = list(dict.fromkeys((*named, *settings, models.TARGET, models.DRAFT)))
        self.model = cache(self._model)
        self.opened = cache(self._opened)

    def _opened(self, version: str) -> LoadableModel | None:
        """The folder that holds a version, None where none at hand does."""
        for path in self._paths:
            try:
                found = open_model(path, self._config.precision, self._config.engine)
            except HtfiError:
                continue
            for opened in (found, in_full_precision(found)):
                if opened.version == version:
                    return opened
        return None

    def _model(self, version: str) -> WeightlessModel | None:
        opened = self.opened(version)
        if opened is None:
            return None
        vocabulary = Vocabulary(opened.tokenizer)
        return WeightlessModel(
            vocabulary,
            tuple(opened.tokenizer.opening),
            TokenText.of(vocabulary),
            opened.trust,
            opened.meaning,
        )


def reading_terms(settings: Settings) -> ReadingSettings:
    """What a run's settings say of its readings."""
    lead_ns = round(settings.buffering.lead_s * 1e9)
    return ReadingSettings(settings.narrative, lead_ns)


def token_text(wording: GenerationTrace, named: Path | None = None) -> Callable[[int], str] | None:
    """What tokens of a wording say, by the vocabulary of the model that wrote it: that of the folder `named`, or a
    shipped one; None where neither is at hand, for a record can be read without its models.

    Raises: InvalidInput where the named folder holds another model.
    """
    digest = wording.target.rpartition("@")[2]
    for path in (named,) if named is not None else (models.TARGET, models.DRAFT):
        try:
            folder = ModelFolder.open(path)
            if digest and folder.digest.startswith(digest):
                return TokenText.of(Vocabulary(HuggingFaceTokenizer(folder.tokenizer_file)))
        except HtfiError:
            if named is not None:
                raise
    if named is not None:
        raise InvalidInput(f"{named} does not hold {wording.target}, which wrote this: name its folder")
    return None
