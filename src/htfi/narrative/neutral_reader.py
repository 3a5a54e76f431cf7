"""Reads facts of texts with neutral names: what is read does not depend on who is named."""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import FactNetwork, FactScores
from htfi.narrative.facts.fact_reader import Asked, FactReader
from htfi.narrative.facts.party_names import is_no_firm, name_spans
from htfi.narrative.neutral_names import NEUTRAL_VERSION, NeutralText, neutral_texts
from htfi.narrative.neutral_scores import mean_scores, with_text_as_written

_NO_NAMES = re.compile(r"\S*(?://|www\.)\S*|[@#]\w+")  # addresses, handles and hashtags


class NeutralFactReader(FactReader):
    """As `FactReader`, but the network sees each text with neutral names, in several forms that are averaged, and what
    happens and for whom it is good follows from these alone.

    A company that stands in no list is found by the network, which reads the first form before the others. The text as
    it is written says whether it is news of markets, and counts in part for the roles of its names.
    """

    def __init__(self, network: FactNetwork, linker: EntityLinker) -> None:
        super().__init__(network, linker)
        self._neutral_network = network
        self.version = f"{network.version}+{NEUTRAL_VERSION}"

    def _scores(
        self, texts: Sequence[tuple[str, Asked]], *, are_passages: bool
    ) -> Sequence[FactScores | None]:
        """What the network says of each text, for whom it is asked: texts that differ in names alone are read once.
        Passages are read like headlines.
        """
        del are_passages
        forms = [neutral_texts(text, whom, self.linker) or [NeutralText(text, ())] for text, whom in texts]
        read = self._read_unique(found[0].text for found in forms)
        for place, (text, whom) in enumerate(texts):
            first = forms[place][0]
            others = self._unknown_companies(text, first, read[first.text])
            if others:
                forms[place] = neutral_texts(text, whom, self.linker, others)
        left = [form.text for found in forms for form in found] + [text for text, _ in texts]
        read |= self._read_unique(one for one in left if one not in read)
        return [
            read[text]
            if not found[0].replaced
            else with_text_as_written(
                mean_scores(found, [read[form.text] for form in found]), found[0].replaced, text, read[text]
            )
            for found, (text, _) in zip(forms, texts, strict=True)
        ]

    def _read_unique(self, texts: Iterable[str]) -> dict[str, FactScores]:
        unique = list(dict.fromkeys(texts))
        return dict(zip(unique, self._neutral_network.read(unique), strict=True))

    def _unknown_companies(self, text: str, first: NeutralText, scores: FactScores) -> list[str]:
        """Names in a text, not replaced in its first form, in which the network sees a party there."""
        known = [(one.new_start, one.new_end) for one in first.replaced]
        known += [(one.start, one.end) for one in self.linker.mentions(first.text)]
        known += [match.span() for match in _NO_NAMES.finditer(first.text)]
        found = [
            (one.start, one.end)
            for one in name_spans(first.text, [], scores.spans, scores.roles)
            if not any(one.start < end and one.end > start for start, end in known)
            and not is_no_firm(first.text, one)
        ]
        places = first.original(np.array(found, np.int64).reshape(-1, 2)).tolist()
        return list(dict.fromkeys(text[start:end] for start, end in places))
