"""Holds each recorded reading against the decision that it stands in: seed, prompt, items, form, citations, view. What
needs the model itself is left to a replay; what is held here is found without it. The audit and the replay ask.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from htfi.decoding.form import Forms
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import Decision, Part, View, Wording
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import News
from htfi.narrative.answer import Trust, understand, view_form
from htfi.narrative.deep_reader import is_deep_version, together
from htfi.narrative.leverage import limited, shares_in
from htfi.narrative.meaning import Meaning
from htfi.narrative.merging import own, trust_in
from htfi.narrative.question import MAX_ITEMS, Question, put, seed_of
from htfi.pipeline.recorded_reading import (
    Terms,
    first_difference,
    identity_problems,
    items_shown,
    noted_part,
    prepared_problems,
    view_told,
)
from htfi.pipeline.trail import Known, Trail
from htfi.pipeline.weighing import is_bounded

_OURS = ("reader.edge", "reader.speculative", "reader.secure")  # who tells the tokens of every reading


class Model(NamedTuple):
    """A model without its weights: what a prompt is put into tokens with, and an answer understood."""

    vocabulary: Vocabulary
    opening: tuple[int, ...]
    spell: Callable[[int], str]
    trust: Trust
    meaning: Meaning | None


class BoundReadings:
    """Tell it every decision of a ledger in order. `find` gives a model by its version, None where it is not here.

    `num_undone` counts readings by what could not be held against them.
    """

    def __init__(self, terms: Terms, find: Callable[[str], Model | None]) -> None:
        self.trail = Trail()
        self.num_read = 0
        self.num_undone: Counter[str] = Counter()
        self._terms, self._find = terms, find
        self._forms: dict[int, Forms] = {}

    def problems(self, decision: Decision) -> list[str]:
        """What of its view does not follow from its news, the decisions before it and the settings."""
        view = decision.view
        found: list[str] = []
        if view is not None:
            found += self._heard(decision, view)
            read = own(view)
            if read is None:
                pass
            elif view.wording is None:
                found += self._carried(decision, read)
            else:
                found += self._read(decision, read, view.wording)
        self.trail.take(decision)
        return found

    # --- the view, whoever read

    def _heard(self, decision: Decision, view: View) -> list[str]:
        """Whether it rests on items that the decision knew, as far as these are trusted."""
        hearing = decision.hearing
        if hearing is None:
            return ["it has a view and heard no news"]
        known = {item.id: item for item in (*hearing.considered, *hearing.set_aside)}
        found: list[str] = []
        if (
            len(hearing.considered) < MAX_ITEMS
        ):  # else a view in depth may cite items beyond those that are told
            unknown = [name for name in view.cited if name not in known]
            found += [f"it cites {name}, which is none of its news" for name in unknown]
        if view.half_life_ns != self._terms.narrative.half_life_ns:
            found.append("its view fades with another half-life than the settings say")
        if "readings" not in decision.models:
            return found
        parts: list[Part] = []
        for part in view.parts:
            if part.is_worded:
                parts.append(replace(part, trust=trust_in(hearing, part.cited)))
                continue
            item = known.get(part.cited[0]) if len(part.cited) == 1 else None
            parts.append(
                noted_part(item, self._terms.narrative) if item is not None else replace(part, trust=-1.0)
            )
        if is_bounded(decision):
            parts = limited(parts, shares_in(hearing), view.as_of_ns)
        for part, expected in zip(view.parts, parts, strict=True):
            if part != expected:
                found.append(
                    "the trust in what it read is not that of the items it cites"
                    if part.is_worded
                    else f"the reading of {', '.join(part.cited)} does not follow from its scores"
                )
        return found

    def _carried(self, decision: Decision, read: View) -> list[str]:
        """A view without words of its own: one that is kept, or no model's of ours."""
        kept = self.trail.kept.get(decision.series)
        if decision.amends and not decision.is_read_for:
            return []  # held against the amendment that it follows
        if kept is not None and _same(kept.view, read, decision):
            heard = decision.hearing.considered if decision.hearing is not None else ()
            if kept.items is None or kept.items == tuple(item.id for item in heard[: len(kept.items)]):
                return []
            return [f"it keeps the view that was read for {kept.read_for}, and its news are others"]
        if read.as_of_ns == decision.as_of_ns:
            readers = {decision.models.get(name) for name in _OURS}
            is_ours = read.reader in readers or is_deep_version(read.reader)
            return ["how its view was worded is not recorded"] if is_ours else []
        if kept is None:
            return ["it keeps a view, and none was read for its series before"]
        if kept.view.as_of_ns != read.as_of_ns:
            return [
                f"the view that it keeps is not the newest of its series, which was read for {kept.read_for}"
            ]
        differing = [
            name
            for name in View.__struct_fields__
            if name != "parts" and getattr(kept.view, name) != getattr(read, name)
        ]
        return [
            f"the view that it keeps is not the one read for {kept.read_for}: other {', '.join(differing)}"
        ]

    # --- a reading of its own

    def _read(self, decision: Decision, read: View, wording: Wording) -> list[str]:
        self.num_read += 1
        found = identity_problems(decision, read, wording, self._terms)
        question, more = self._question(decision, read, wording)
        found += more
        if question is None:
            return found
        model = self._find(wording.target)
        if model is None:
            self.num_undone[f"its prompt and tokens, as the folder of {wording.target} is not here"] += 1
            return found
        found += self._prompt(question, wording, model)
        if not found:
            found += self._view(decision, read, wording, question, model)
        return found

    def _question(
        self, decision: Decision, read: View, wording: Wording
    ) -> tuple[Question | None, list[str]]:
        """What was asked, rebuilt from the entry and the decisions before it; None where that cannot be."""
        asked_ns = decision.as_of_ns
        shown, found = items_shown(decision, read, wording)
        known: Known = self.trail.known(decision)
        if read.prepared:
            if wording.asked_ns is msgspec.UNSET:
                self.num_undone["what was read ahead, as its instant is not recorded"] += 1
                return None, found
            asked_ns = wording.asked_ns
            known = self.trail.known_at(decision.series, asked_ns - self._terms.lead_ns)
        elif wording.asked_ns is not msgspec.UNSET:
            found.append("it tells an instant that was asked about, and nothing was prepared")
        expected = seed_of(decision.symbol, asked_ns, in_depth=bool(wording.paths))
        if wording.seed != expected:
            found.append(f"its seed is {wording.seed}; its symbol and instant give {expected}")
        if shown is None:
            return None, found
        items = tuple(
            News(one.available_at_ns, one.available_at_ns, "", 0, one.id, one.headline, one.symbols)
            for one in shown
        )
        most = max(len(items), MAX_ITEMS)
        return Question(decision.symbol, asked_ns, known.bar_ns, items, known.context, most_items=most), found

    def _prompt(self, question: Question, wording: Wording, model: Model) -> list[str]:
        """The prompt as it must be; of a record that does not hold the headlines, what follows them."""
        prompt, num_shared = put(question, model.vocabulary.dialect)
        try:
            if wording.shown is msgspec.UNSET:
                self.num_undone["the headlines in its prompt, as they are not recorded"] += 1
                expected = model.vocabulary.encode(prompt[num_shared:])
                begin = len(wording.prompt) - len(expected)
                if begin < 0:
                    return ["its prompt is shorter than what follows the news in it"]
            else:
                expected, begin = [*model.opening, *model.vocabulary.encode(prompt)], 0
        except InvalidInput as error:
            return [f"its prompt cannot be rebuilt: {error}"]
        told = first_difference(wording.prompt[begin:], expected, model.spell, begin)
        return [f"its prompt is not that of its news, prices and symbol: {told}"] if told else []

    def _view(
        self, decision: Decision, read: View, wording: Wording, question: Question, model: Model
    ) -> list[str]:
        """Whether the tokens hold to the form of an answer on these items, and say what the view says."""
        finisher = model
        if wording.num_settled >= 0:
            found = self._find(wording.draft)
            if found is None:
                self.num_undone[
                    f"what the draft's words mean, as the folder of {wording.draft} is not here"
                ] += 1
                return []
            finisher = found
        form = self._forms.setdefault(id(model.vocabulary), Forms(model.vocabulary)).compiled(
            view_form(model.vocabulary.dialect, wording.num_items)
        )
        try:
            said = [
                understand(form.fields(tokens), finisher.trust)
                for tokens in wording.paths or (wording.tokens,)
            ]
        except (IntegrityError, KeyError) as error:
            return [f"its tokens are no answer on {wording.num_items} items: {error}"]
        expected = view_told(said, read, wording, question, finisher.meaning)
        if wording.paths and wording.tokens != wording.paths[together(said)[1]]:
            return ["the answer that stands for all is another"]
        if read.prepared:
            problems = prepared_problems(decision, read, wording, expected)
            expected = replace(
                expected, cited=read.cited, as_of_ns=read.as_of_ns, provisional=True, prepared=read.prepared
            )
        else:
            problems = []
        differing = [
            name
            for name in View.__struct_fields__
            if name not in ("wording", "parts") and getattr(expected, name) != getattr(read, name)
        ]
        if differing:
            problems.append(f"the view does not follow from the tokens: other {', '.join(differing)}")
        return problems


def _same(kept: View, read: View, decision: Decision) -> bool:
    if decision.view is not None and decision.view.parts and "readings" not in decision.models:
        kept = replace(kept, provisional=read.provisional)  # a merged view did not tell it
    return kept == read
