"""Events that the lines of `corpora/facts` word, for simulated worlds: real names and formats beside the grammar's own.

What a line means is its labels, taken through the table of effects by the function that reads facts in service; what
the network makes of it is noisier (`story_facts.py`).
"""

import math
from collections.abc import Mapping, Sequence
from statistics import mean

from msgspec.structs import replace

from htfi.domain.errors import InvalidInput
from htfi.narrative.encoding.linking import EntityLinker, is_company
from htfi.narrative.facts.extraction import extract_facts
from htfi.narrative.facts.reading import AssetReading, Silence, read_for
from htfi.narrative.facts.record import EventGroup, EventKind, Modality, NewsFacts, Party, PartyRole
from htfi_train.facts.lines import FactLine, PartySpan, firm_names, is_firm, with_names
from htfi_train.simulation.companies import SimulatedAsset, company_name
from htfi_train.simulation.events import NewsEvent, NewsEventKind
from htfi_train.simulation.rng import Rng
from htfi_train.simulation.tables import read_table

MAX_LINE_CHARS = 138  # longer ones would be cut
_GRAMMAR = frozenset("[]{}|")  # a wording's own characters
_SIZE_SPREAD = 0.35  # deviation of the log of a move
_TRAP_SHARE = 0.5  # of lines about no market that carry a company's tag
_INVENTED_SHARE = 0.5  # of names that are neither the subject's nor the counterpart's
_ELSEWHERE = (Silence.UNRELATED, Silence.OTHERS, Silence.NO_LINE)
_OWN_NAME_SHARE = 0.6  # of lines with one firm that keep its name, which no one is told is the subject's
_SIDES = {"+": 1.0, "0": 0.0, "-": -1.0}
_CREDIBILITY = {
    Modality.DID: 0.92,
    Modality.WILL: 0.88,
    Modality.MAY: 0.75,
    Modality.DENIES: 0.82,
    Modality.RUMOUR: 0.72,
}
_K = EventKind
_CAUSES: Mapping[NewsEventKind, tuple[EventKind, ...]] = {
    NewsEventKind.EARNINGS: (_K.EARNINGS, _K.SALES_UPDATE),
    NewsEventKind.LEGAL: (_K.APPROVAL, _K.RECALL, _K.LAWSUIT, _K.INVESTIGATION, _K.REGULATION, _K.TRIAL_RESULT),
    NewsEventKind.SUPPLY: (
        _K.DISRUPTION, _K.CYBERATTACK, _K.SUPPLY, _K.INVENTORIES, _K.DEMAND, _K.HARVEST, _K.CRYPTO_SECURITY,
    ),
    NewsEventKind.RUMOUR: (_K.SHORT_REPORT, _K.COMMENTARY, _K.MARKET_MOVE),
}  # fmt: skip
_CAUSE_OF_GROUP = {
    EventGroup.MACRO: NewsEventKind.CENTRAL_BANK,
    EventGroup.CENTRAL_BANK: NewsEventKind.CENTRAL_BANK,
    EventGroup.POLITICS: NewsEventKind.GEOPOLITICS,
}
_REASONS = read_table(
    "line_reasons", dict[EventKind, tuple[str, str, str]]
)  # up, down and neither, of the axis


class LineEvents:
    """Draws events that the lines word, for the assets of a world (`simulation.events.EventSource`)."""

    def __init__(self, lines: Sequence[FactLine]) -> None:
        """Raises: InvalidInput, where none of the lines can be worded."""
        self._lines = [
            line for line in lines if len(line.text) <= MAX_LINE_CHARS and not _GRAMMAR & set(line.text)
        ]
        if not self._lines:
            raise InvalidInput("no line of the corpora can word a story: each is too long or holds brackets")
        self._linker = EntityLinker({})

    def __call__(self, rng: Rng, assets: tuple[SimulatedAsset, ...]) -> NewsEvent | None:
        line = rng.choice(self._lines)
        subject, other = rng.sample([asset for asset in assets if asset.company], 2)
        is_company_news = line.kind.group is EventGroup.COMPANY
        names_known = is_company_news and any(map(is_company, self._linker.link(line.text)))
        firms = firm_names(line)
        is_nameless = len(firms) == 1 and not names_known and rng.chance(_OWN_NAME_SHARE)
        if is_nameless:
            (called_so,) = firms
            text, spans = with_names(line, lambda name, _: name)
            called = {called_so: subject}
        else:
            text, spans, called = _named(line, subject, other, rng)
        if len(text) > MAX_LINE_CHARS or (
            names_known and not called
        ):  # or about a firm that is none of the world's
            return None
        tagged = (subject, other)[: len(called)] if called else (subject,) if is_company_news else ()
        if line.kind is EventKind.UNRELATED and rng.chance(_TRAP_SHARE):
            tagged = (subject,)
        facts = _labelled_facts(line, text, spans, called, self._linker)
        read = {
            asset.symbol: read_for(facts, asset.symbol, asset.name)
            for asset in (tagged if is_company_news else assets)
        }
        return replace(_event(line, text, tagged, read, rng), is_nameless=is_nameless)


def _named(
    line: FactLine, subject: SimulatedAsset, other: SimulatedAsset, rng: Rng
) -> tuple[str, list[PartySpan], dict[str, SimulatedAsset]]:
    """The text, its parties, and which of them are assets of the world, by name: one party in turn is the subject."""
    instead: dict[str, str] = {}
    called: dict[str, SimulatedAsset] = {}

    def name_of(name: str, role: PartyRole) -> str:
        if not is_firm(line, name, role):
            return name
        if name not in instead:
            free = [asset for asset in (subject, other) if asset.short not in called]
            if free:
                called[free[0].short] = free[0]
                instead[name] = free[0].short
            else:
                instead[name] = company_name(rng, "")[1] if rng.chance(_INVENTED_SHARE) else name
        return instead[name]

    text, spans = with_names(line, name_of)
    return text, spans, called


def _labelled_facts(
    line: FactLine,
    text: str,
    spans: Sequence[PartySpan],
    called: Mapping[str, SimulatedAsset],
    linker: EntityLinker,
) -> NewsFacts:
    """The facts as the labels state them; figures, economies and policy as code finds them."""
    known = extract_facts(text, None, linker)
    by_place = {mention.start: mention.symbol for mention in linker.mentions(text)}
    parties: list[Party] = []
    for span in spans:
        name = text[span.start : span.end]
        symbol = called[name].symbol if name in called else by_place.get(span.start)
        symbols = () if symbol is None else (symbol,)
        parties.append(Party(name, span.start, span.end, span.role, 1.0, _SIDES[span.side], symbols))
    return replace(
        known,
        event=line.kind,
        event_confidence=1.0,
        axis=_SIDES[line.axis],
        axis_neutral=float(line.axis == "0"),
        tone=_SIDES[line.tone],
        neutral=float(line.tone == "0"),
        modality=line.modality,
        modality_confidence=1.0,
        tense=line.tense,
        tense_confidence=1.0,
        relevant=float(line.kind is not EventKind.UNRELATED),
        parties=tuple(parties),
    )


def _event(
    line: FactLine,
    text: str,
    tagged: Sequence[SimulatedAsset],
    read: Mapping[str, AssetReading],
    rng: Rng,
) -> NewsEvent:
    scale = math.exp(_SIZE_SPREAD * rng.normal())
    symbols = [asset.symbol for asset in tagged]
    concerned = {symbol: one for symbol, one in read.items() if one.silence not in _ELSEWHERE}
    up, down, neither = _REASONS[line.kind]
    side = _SIDES[line.axis]
    if line.kind.group is EventGroup.COMPANY and symbols and symbols[0] in concerned:
        side = concerned[symbols[0]].direction  # the reason is that of the company that is the subject here
    return NewsEvent(
        kind=_cause(line),
        subkind=line.kind.value,
        phrases=(text,),
        slots={},
        why=neither if not side else up if side > 0.0 else down,
        subject=symbols[0] if symbols else "",
        counterpart=symbols[1] if len(symbols) > 1 else "",
        credibility=_CREDIBILITY[line.modality],
        volatility_multiplier=mean([one.volatility for one in concerned.values()] or [1.0]),
        half_life_bars=rng.uniform_between(0.4, 1.5),
        effects=tuple((symbol, scale * one.direction * one.size_sigmas) for symbol, one in concerned.items()),
        is_line=True,
    )


def _cause(line: FactLine) -> NewsEventKind:
    if line.modality is Modality.RUMOUR:
        return NewsEventKind.RUMOUR
    by_kind = next((cause for cause, kinds in _CAUSES.items() if line.kind in kinds), NewsEventKind.GUIDANCE)
    return _CAUSE_OF_GROUP.get(line.kind.group, by_kind)
