"""The models that wrote a run's readings, by the versions that its entries name. The audit and the replay look here."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from htfi import models
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import HtfiError
from htfi.pipeline.bound_readings import Model
from htfi.pipeline.recorded_reading import Terms
from htfi.wiring.models import ModelsConfig, in_full
from htfi.wiring.open_folder import OpenFolder, open_folder
from htfi.wiring.settings import Settings
from htfi.wiring.told_rounds import Words


class RecordedModels:
    """Folders that a person names, those of settings, and the shipped ones; opened when they are looked for.

    None of them is loaded.
    """

    def __init__(self, config: ModelsConfig, named: Sequence[Path] = ()) -> None:
        self._config = config
        settings = [Path(folder) for folder in (config.target, config.draft) if folder]
        self._paths = list(dict.fromkeys((*named, *settings, models.TARGET, models.DRAFT)))
        self.model = cache(self._model)
        self.opened = cache(self._opened)

    def _opened(self, version: str) -> OpenFolder | None:
        """The folder that holds a version, None where none at hand does."""
        for path in self._paths:
            try:
                found = open_folder(path, self._config.precision, self._config.engine)
            except HtfiError:
                continue
            for opened in (found, in_full(found)):
                if opened.version == version:
                    return opened
        return None

    def _model(self, version: str) -> Model | None:
        opened = self.opened(version)
        if opened is None:
            return None
        vocabulary = Vocabulary(opened.tokenizer)
        return Model(
            vocabulary, tuple(opened.tokenizer.opening), Words.of(vocabulary), opened.trust, opened.meaning
        )


def reading_terms(settings: Settings) -> Terms:
    """What a run's settings say of its readings."""
    lead_ns = round(settings.buffering.lead_s * 1e9)
    return Terms(settings.narrative, lead_ns)
