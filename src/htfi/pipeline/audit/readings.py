"""Checks each recorded reading against its decision and the settings, without the model.

`ReadingAuditor` checks who read, which items, with which draft, seed, prompt, form, citations, and the view that the
answers come to. What needs the model itself is left to a replay.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from htfi.decoding.grammar import GrammarCache
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import Decision, Rung
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import News
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news_view import NewsView, ViewPart
from htfi.narrative.answer import ConfidenceCalibration, parse_answer, view_grammar
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.deep_reader import (
    combine_answers,
    deep_reader_version,
    is_deep_reader_version,
)
from htfi.narrative.influence import bound_parts, recorded_limits
from htfi.narrative.merging import recorded_trust, unmerged
from htfi.narrative.question import MAX_ITEMS, Question, build_prompt, reading_seed
from htfi.narrative.view_calibration import ViewCalibration
from htfi.pipeline.audit.expected_views import expected_view, item_part, prepared_problems
from htfi.pipeline.audit.history import PromptContext, RecordedHistory
from htfi.pipeline.audit.keys import PROMOTED_DRAFTS_KEY
from htfi.pipeline.audit.shown_items import fact_problems, prompt_items, symbol_in_prompt
from htfi.pipeline.audit.token_text import first_difference
from htfi.pipeline.weighing import is_influence_bounded

# In whose amendments other readings kept the trust that they had beside the first view.
VERSIONS_WITH_CUT_AMENDMENTS = ("readings/1", "readings/2")


class ReadingSettings(NamedTuple):
    """What a run's settings state about readings; reading ahead of an announcement begins `lead_ns` before it."""

    narrative: NarrativeConfig
    lead_ns: int


def identity_problems(
    decision: Decision, read: NewsView, trace: GenerationTrace, terms: ReadingSettings
) -> list[str]:
    """What who read, and how, must be by the decision's plan and the settings."""
    config, found = terms.narrative, list[str]()
    rung = (
        decision.plan.rung_after_release
        if read.prepared and decision.plan.rung_after_release
        else decision.plan.rung
    )
    reader = decision.models.get(f"reader.{rung}", "")
    in_depth = rung is Rung.DEEP
    expected = deep_reader_version(trace.target, len(trace.paths)) if trace.paths else trace.target
    if reader != expected:
        found.append(f"{expected} generated it, but {reader or 'no model'} reads at the rung {rung}")
    if bool(trace.paths) and (not in_depth or len(trace.paths) != config.deep_paths):
        found.append(f"it has {len(trace.paths)} answers, which a reading at the rung {rung} cannot have")
    temperature = config.deep_temperature if trace.paths else config.temperature
    if trace.temperature != temperature:
        found.append(f"its temperature is {trace.temperature:g}, but the settings state {temperature:g}")
    drafts = decision.models.get("reader.edge", trace.draft)
    may_change = trace.num_verified < 0 and (
        PROMOTED_DRAFTS_KEY in decision.models or "readings" not in decision.models
    )
    if trace.draft not in ("", drafts) and not may_change:
        found.append(f"{trace.draft} drafted, but the draft model is {drafts}")
    if (read.provisional and not read.prepared) != (trace.num_verified >= 0):
        found.append("its provisional mark does not follow from which model generated it")
    if trace.num_verified >= max(len(trace.tokens), 1):
        found.append(
            f"{trace.num_verified} of {len(trace.tokens)} tokens are recorded as the target's, so "
            "none is the draft's"
        )
    if read.as_of_ns != decision.as_of_ns:
        found.append("its view is of another time")
    return found


_OWN_READERS = (
    "reader.edge",
    "reader.speculative",
    "reader.secure",
)  # readers that record the tokens of every reading


class WeightlessModel(NamedTuple):
    """A model without its weights: what a prompt is put into tokens with, and an answer understood."""

    vocabulary: Vocabulary
    opening: tuple[int, ...]
    spell: Callable[[int], str]
    trust: ConfidenceCalibration
    meaning: ViewCalibration | None


class ReadingAuditor:
    """It gets every decision of a ledger in order. `find` gives a model by its version, None where it is not here.

    `num_undone` counts readings by what could not be checked.
    """

    def __init__(self, terms: ReadingSettings, find: Callable[[str], WeightlessModel | None]) -> None:
        self.history = RecordedHistory()
        self.num_read = 0
        self.num_unchecked: Counter[str] = Counter()
        self._terms, self._find = terms, find
        self._forms: dict[int, GrammarCache] = {}

    def problems(self, decision: Decision) -> list[str]:
        """What of its view does not follow from its news, the decisions before it and the settings."""
        if decision.is_checkpoint_release:
            return []  # derived again from the decision that it releases
        view = decision.view
        found: list[str] = []
        if view is not None:
            found += self._news_problems(decision, view)
            read = unmerged(view)
            if read is None:
                pass
            elif view.trace is None:
                found += self._kept_view_problems(decision, read)
            else:
                found += self._reading_problems(decision, read, view.trace)
        self.history.add(decision)
        return found

    def question_of(self, decision: Decision) -> Question | None:
        """What the model was asked for a decision that comes next, rebuilt from the record; None where it cannot be."""
        read = unmerged(decision.view) if decision.view is not None else None
        if read is None or read.trace is None:
            return None
        return self._rebuild_question(decision, read, read.trace)[0]

    # --- the view, whatever reader it is from

    def _news_problems(self, decision: Decision, view: NewsView) -> list[str]:
        """Whether it rests on items that the decision knew, as far as these are trusted."""
        news_context = decision.news_context
        if news_context is None:
            return ["it has a view but no news"]
        known = {item.id: item for item in (*news_context.considered, *news_context.set_aside)}
        found: list[str] = []
        if (
            len(news_context.considered) < MAX_ITEMS
        ):  # else a view in depth may cite items beyond those that are recorded
            unknown = [name for name in view.cited if name not in known]
            found += [f"it cites {name}, which is not one of its news items" for name in unknown]
        if view.half_life_ns != self._terms.narrative.half_life_ns:
            found.append("the half-life of its view is not that of the settings")
        if "readings" not in decision.models:
            return found
        is_cut = decision.models["readings"] in VERSIONS_WITH_CUT_AMENDMENTS
        beside = {part.cited: part for part in self.history.readings_beside(decision)} if is_cut else {}
        parts: list[ViewPart] = []
        for part in view.parts:
            if part.is_worded:
                parts.append(replace(part, trust=recorded_trust(news_context, part)))
                continue
            item = known.get(part.cited[0]) if len(part.cited) == 1 else None
            derived = beside.get(part.cited) or (item and item_part(item, decision, self._terms.narrative))
            parts.append(derived or replace(part, trust=-1.0))
        if is_influence_bounded(decision):
            parts = bound_parts(parts, recorded_limits(news_context), view.as_of_ns)
        for part, expected in zip(view.parts, parts, strict=True):
            if part != expected:
                found.append(
                    "the trust in its reading does not follow from the items that it cites"
                    if part.is_worded
                    else f"the reading of {', '.join(part.cited)} does not follow from its scores"
                )
        return found

    def _kept_view_problems(self, decision: Decision, read: NewsView) -> list[str]:
        """A view without words of its own: one that is kept, or no model's of ours."""
        kept = self.history.views.get(decision.series)
        if decision.amends and not decision.has_own_reading:
            return []  # compared with the amendment that it follows
        if kept is not None and _is_same_view(kept.view, read, decision):
            audited = decision.news_context.considered if decision.news_context is not None else ()
            if kept.items is None or kept.items == tuple(item.id for item in audited[: len(kept.items)]):
                return []
            return [f"it uses the view that was read for {kept.read_for}, but its news differs"]
        if read.as_of_ns == decision.as_of_ns:
            readers = {decision.models.get(name) for name in _OWN_READERS}
            is_ours = read.reader in readers or is_deep_reader_version(read.reader)
            return ["the generation of its view is not recorded"] if is_ours else []
        if kept is None:
            return ["it uses an earlier view, but none was read for its series"]
        if kept.view.as_of_ns != read.as_of_ns:
            return [f"its view is not the newest of its series, which was read for {kept.read_for}"]
        differing = [
            name
            for name in NewsView.__struct_fields__
            if name != "parts" and getattr(kept.view, name) != getattr(read, name)
        ]
        return [f"its view is not the one read for {kept.read_for}: different {', '.join(differing)}"]

    # --- a reading of its own

    def _reading_problems(self, decision: Decision, read: NewsView, trace: GenerationTrace) -> list[str]:
        self.num_read += 1
        found = identity_problems(decision, read, trace, self._terms)
        question, more = self._rebuild_question(decision, read, trace)
        found += more
        if question is None:
            return found
        model = self._find(trace.target)
        if model is None:
            self.num_unchecked[f"the prompt and tokens, because the folder of {trace.target} is missing"] += 1
            return found
        found += fact_problems(decision, read, trace, model.vocabulary.dialect)
        found += self._prompt_problems(question, trace, model)
        if not found:
            found += self._view_problems(decision, read, trace, question, model)
        return found

    def _rebuild_question(
        self, decision: Decision, read: NewsView, trace: GenerationTrace
    ) -> tuple[Question | None, list[str]]:
        """What was asked, rebuilt from the entry and the decisions before it; None where that cannot be."""
        asked_ns = decision.as_of_ns
        shown, found = prompt_items(decision, read, trace)
        known: PromptContext = self.history.prompt_context(decision)
        if read.prepared:
            if trace.asked_ns is msgspec.UNSET:
                self.num_unchecked["a prepared view, because its time is not recorded"] += 1
                return None, found
            asked_ns = trace.asked_ns
            known = self.history.prompt_context_at(decision.series, asked_ns - self._terms.lead_ns)
        elif trace.asked_ns is not msgspec.UNSET:
            found.append("it records a prepared time, but its view was not prepared")
        expected = reading_seed(decision.symbol, asked_ns, in_depth=bool(trace.paths))
        if trace.seed != expected:
            found.append(f"its seed is {trace.seed}, but its symbol and time give {expected}")
        if shown is None:
            return None, found
        items = tuple(
            News(one.available_at_ns, one.available_at_ns, "", 0, one.id, one.headline, one.symbols)
            for one in shown
        )
        question = Question(
            decision.symbol,
            asked_ns,
            known.bar_ns,
            items,
            known.context,
            most_items=max(len(items), MAX_ITEMS),
            facts={one.id: one.facts for one in shown if one.facts is not msgspec.UNSET},
            asked_as=symbol_in_prompt(decision, read),
        )
        return question, found

    def _prompt_problems(
        self, question: Question, trace: GenerationTrace, model: WeightlessModel
    ) -> list[str]:
        """The prompt as it must be; of a record that does not hold the headlines, what follows them."""
        prompt, num_shared = build_prompt(question, model.vocabulary.dialect)
        try:
            if trace.shown is msgspec.UNSET:
                self.num_unchecked["the headlines in the prompt, because they are not recorded"] += 1
                expected = model.vocabulary.encode(prompt[num_shared:])
                begin = len(trace.prompt) - len(expected)
                if begin < 0:
                    return ["its prompt is shorter than the part that follows the news"]
            else:
                expected, begin = [*model.opening, *model.vocabulary.encode(prompt)], 0
        except InvalidInput as error:
            return [f"its prompt cannot be rebuilt: {error}"]
        difference = first_difference(trace.prompt[begin:], expected, model.spell, begin)
        return (
            [f"its prompt does not follow from its news, prices and symbol: {difference}"]
            if difference
            else []
        )

    def _view_problems(
        self,
        decision: Decision,
        read: NewsView,
        trace: GenerationTrace,
        question: Question,
        model: WeightlessModel,
    ) -> list[str]:
        """Whether the tokens follow the grammar of an answer on these items, and mean what the view states."""
        finisher = model
        if trace.num_verified >= 0:
            found = self._find(trace.draft)
            if found is None:
                self.num_unchecked[
                    f"the meaning of the draft's tokens, because the folder of {trace.draft} is missing"
                ] += 1
                return []
            finisher = found
        form = self._forms.setdefault(id(model.vocabulary), GrammarCache(model.vocabulary)).compiled(
            view_grammar(model.vocabulary.dialect, trace.num_items)
        )
        try:
            answers = [
                parse_answer(form.fields(tokens), finisher.trust) for tokens in trace.paths or (trace.tokens,)
            ]
        except (IntegrityError, KeyError) as error:
            return [f"its tokens are not an answer about {trace.num_items} items: {error}"]
        expected = expected_view(answers, read, trace, question, finisher.meaning)
        if trace.paths and trace.tokens != trace.paths[combine_answers(answers)[1]]:
            return ["the recorded answer is not the one that its answers combine to"]
        if read.prepared:
            problems = prepared_problems(decision, read, trace, expected)
            expected = replace(
                expected, cited=read.cited, as_of_ns=read.as_of_ns, provisional=True, prepared=read.prepared
            )
        else:
            problems = []
        differing = [
            name
            for name in NewsView.__struct_fields__
            if name not in ("trace", "parts") and getattr(expected, name) != getattr(read, name)
        ]
        if differing:
            problems.append(f"the view does not follow from the tokens: different {', '.join(differing)}")
        return problems


def _is_same_view(kept: NewsView, read: NewsView, decision: Decision) -> bool:
    if decision.view is not None and decision.view.parts and "readings" not in decision.models:
        kept = replace(kept, provisional=read.provisional)  # a merged view did not record it
    return kept == read
