"""Reads facts of texts with neutral names: what is read does not depend on who is named."""

from collections.abc import Sequence

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import FactNetwork, FactScores
from htfi.narrative.facts.fact_reader import Asked, FactReader
from htfi.narrative.neutral_names import NEUTRAL_VERSION, NeutralText, mean_scores, neutral_texts


class NeutralFactReader(FactReader):
    """As `FactReader`, but the network sees each text with neutral names alone, in several forms that are averaged."""

    def __init__(self, network: FactNetwork, linker: EntityLinker) -> None:
        super().__init__(network, linker)
        self._neutral_network = network
        self.version = f"{network.version}+{NEUTRAL_VERSION}"

    def _scores(self, texts: Sequence[tuple[str, Asked]]) -> Sequence[FactScores | None]:
        """What the network says of each text, for whom it is asked: texts that differ in names alone are read once."""
        forms = [neutral_texts(text, whom, self.linker) for text, whom in texts]
        forms = [found or [NeutralText(text, ())] for found, (text, _) in zip(forms, texts, strict=True)]
        unique = list(dict.fromkeys(form.text for found in forms for form in found))
        read = dict(zip(unique, self._neutral_network.read(unique), strict=True))
        return [
            read[found[0].text]
            if not found[0].replaced
            else mean_scores(found, [read[form.text] for form in found])
            for found in forms
        ]
