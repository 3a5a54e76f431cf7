"""What the facts of an item say about one asset: relevance, direction, size, and whether it speaks at all.

Silence is an answer: an item that is unrelated, names others, repeats what is known, or is not understood says nothing,
with the reason. Pure functions; the numbers that decide are in `ReadingConfig`.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec
from msgspec import UNSET

from htfi.domain.news import ItemReading
from htfi.narrative.encoding.linking import has_built_in_name, names_company
from htfi.narrative.facts.assets import Asset, AssetKind, asset_of, is_topic, names_asset
from htfi.narrative.facts.effects import TABLE_VERSION, SignedEffect, effects_on
from htfi.narrative.facts.event_words import (
    gives_advice,
    is_as_expected,
    is_market_wrap,
    is_undone,
    reassures,
    reports_long_move,
    tone_side,
)
from htfi.narrative.facts.known_sides import action_axis, sureness, surprise_axis
from htfi.narrative.facts.naming import find_name, has_symbol_as_word
from htfi.narrative.facts.policy.action import PolicyExpectation
from htfi.narrative.facts.record import (
    BodyStance,
    EventGroup,
    EventKind,
    Modality,
    NewsFacts,
    Party,
    PartyRole,
    Tense,
    TextFault,
)
from htfi.narrative.facts.regions import find_regions
from htfi.narrative.thousandths import rounded


class Silence(StrEnum):
    """Why an item says nothing about an asset."""

    NONE = ""
    UNRELATED = "not about markets"
    OTHERS = "about others"
    NO_LINE = "no line of the table"
    NEUTRAL = "neither good nor bad"
    UNCLEAR = "not understood well enough"
    RECAP = "reports an old move"
    KNOWN = "as expected"
    NO_DIRECTION = "moves it either way"
    BODY_DISAGREES = "headline and body disagree"
    EMPTY = TextFault.EMPTY.value
    CUT = TextFault.CUT.value
    CONTRADICTORY = TextFault.CONTRADICTORY.value
    WITHDRAWN = TextFault.WITHDRAWN.value
    OURSELVES = TextFault.OURSELVES.value


class ReadingConfig(msgspec.Struct, frozen=True):
    """Thresholds of a reading, all 0–1, set on the project's own lines and on a sample of the labelled sets."""

    min_share: float = 0.52  # probability of the side, from which it is stated
    min_share_named: float = 0.46  # the same for a company that is asked about and named
    min_relevant: float = 0.5
    min_event: float = 0.3  # probability of the kind of event, for an asset that the text does not name
    recap: float = 0.7  # probability from which a recap is one
    min_stated: float = 0.6  # of a party's own sign, from which it counts before the axis of the event
    party_weight: float = 0.5  # of the party's own sign beside that of the whole text


DEFAULT_CONFIG = ReadingConfig()


class AssetReading(msgspec.Struct, frozen=True):
    """What an item means for one asset. Empty `silence`: it speaks.

    Units: `direction` −1, 0, 1; `size_sigmas` daily standard deviations of the asset, first move; `volatility` how many
    times the usual the day's move is; `confidence` 0–1 the probability of its side against the other; `lines` are the
    numbers of the lines of the table of effects that spoke. `score` −1…1 is P(up) − P(down) before the threshold.
    """

    symbol: str
    asset: AssetKind
    relevance: float
    role: PartyRole | None
    direction: int
    size_sigmas: float
    volatility: float
    confidence: float
    score: float
    silence: Silence
    lines: tuple[int, ...] = ()


_RELEVANCE_OF_ROLE = {
    PartyRole.RATER: 0.1,
    PartyRole.SPEAKER: 0.2,
    PartyRole.BYSTANDER: 0.2,
    PartyRole.REGULATOR: 0.3,
    PartyRole.PEER: 0.6,
}
# The tone of a text is mostly that for another party than one in these roles.
_BESIDE_TONE = frozenset(
    {
        PartyRole.ACQUIRER,
        PartyRole.PLAINTIFF,
        PartyRole.INVESTOR,
        PartyRole.CUSTOMER,
        PartyRole.PEER,
        PartyRole.LOSER,
    }
)
_ROLES_WITHOUT_EFFECT = frozenset({PartyRole.RATER, PartyRole.SPEAKER, PartyRole.BYSTANDER})
_MIN_ROLE = (
    0.55  # probability of a party's role from which the lines for this role speak: their moves are larger
)
_TAGGED = 0.7  # of the relevance of an item that is about an asset by its tag alone
_COMPANY_PARTIES = frozenset(PartyRole) - {PartyRole.SPEAKER, PartyRole.REGULATOR}
# Of a company that trades in an asset, these move the asset too.
_FAILURES = frozenset({EventKind.BANKRUPTCY, EventKind.CYBERATTACK, EventKind.INVESTIGATION})
_MAJOR = frozenset({"US", "EA", "CN"})  # economies whose events move shares elsewhere
_MARKET_WIDE = frozenset({EventGroup.MACRO, EventGroup.CENTRAL_BANK, EventGroup.POLITICS})
_CHANGE_TONE = 0.9  # of figures better than those before; they are read rightly in 98 of 100 labelled lines
_PHRASE_TONE = 0.7  # of set phrases
_OF_COMPANIES = frozenset({EventGroup.COMPANY, EventGroup.NONE, EventGroup.MARKET})
_MOVES = frozenset({EventKind.MARKET_MOVE, EventKind.COMMENTARY})
_RESULTS = frozenset({EventKind.EARNINGS, EventKind.SALES_UPDATE})
_SCHEDULED = frozenset({EventGroup.MACRO, EventGroup.CENTRAL_BANK})
_STRENGTH = {
    Modality.DID: 1.0,
    Modality.WILL: 0.9,
    Modality.MAY: 0.6,
    Modality.RUMOUR: 0.7,
    Modality.DENIES: 0.8,
}


def read_for(
    facts: NewsFacts,
    symbol: str,
    name: str = "",
    *,
    config: ReadingConfig = DEFAULT_CONFIG,
    is_tagged: bool = True,
) -> AssetReading:
    """What the item means for an asset; `symbol` '' stands for whatever the item is mainly about.

    `is_tagged`: whether somebody says that it is about this asset, as its publisher or a person who asks. Without that
    an event of a company speaks for the company that is named alone.
    """
    asset = asset_of(symbol or name, name) if symbol or name else Asset("", AssetKind.EQUITY)
    if facts.fault is not TextFault.NONE:
        return _silent(asset, facts.relevant, Silence(facts.fault.value))
    if facts.event is EventKind.UNRELATED or facts.relevant < config.min_relevant or gives_advice(facts.text):
        return _silent(asset, facts.relevant, Silence.UNRELATED)
    # Where code knows the side, by a decision on rates or a surprise, it replaces the network's.
    axis = surprise_axis(facts) if facts.action is None else action_axis(facts.action)
    if not symbol and not name:
        return _read_subject(facts, axis, config)
    if asset.kind is AssetKind.EQUITY:
        return _read_equity(facts, asset, axis, config, is_tagged=is_tagged)
    return _read_other(facts, asset, axis, config)


def _read_subject(facts: NewsFacts, axis: float | None, config: ReadingConfig) -> AssetReading:
    """For the company, asset or market that the item is about: its tone."""
    subject = Asset("", AssetKind.EQUITY)
    line = effects_on(subject, facts.event, facts.regions, is_named=True)
    score, neutral = _tone(facts, axis)
    return _stated(subject, facts, score, neutral, line, facts.relevant, None, config)


def _read_equity(
    facts: NewsFacts, asset: Asset, axis: float | None, config: ReadingConfig, *, is_tagged: bool
) -> AssetReading:
    party = _party_of(facts, asset)
    others = [
        one
        for one in facts.parties
        if one.role in _COMPANY_PARTIES and not _is_same(one, party) and not _is_asset_name(one)
    ]
    score, neutral = _tone(facts, axis)
    share = 1.0
    if party is None:
        if facts.event.group in _MARKET_WIDE or facts.event in (EventKind.MARKET_MOVE, EventKind.COMMENTARY):
            return _read_market(facts, asset, axis, config)
        is_nameless = not asset.name and not has_built_in_name(asset.symbol)
        if not is_tagged:
            return _silent(asset, 0.1, Silence.OTHERS)
        if is_nameless and len(others) == 1 and not others[0].symbols:
            # The only firm named, and the tag's own name is unknown: it may be this firm.
            party, others, share = others[0], [], _TAGGED
        elif (
            others
            or facts.event.group is not EventGroup.COMPANY
            or has_symbol_as_word(facts.text, asset.symbol)
        ):
            return _silent(asset, 0.1, Silence.OTHERS)
        else:  # nothing is named: the tag alone says that it is about this company
            lines = effects_on(asset, facts.event, facts.regions)
            return _stated(asset, facts, score, neutral, lines, _TAGGED * facts.relevant, None, config)
    config = msgspec.structs.replace(config, min_share=config.min_share_named)
    if party.role in _ROLES_WITHOUT_EFFECT and party.confidence >= 0.5 and others:
        return _silent(asset, _RELEVANCE_OF_ROLE[party.role], Silence.OTHERS, party.role)
    if others:
        weight = 1.0 if party.role in _BESIDE_TONE or score * party.effect < 0.0 else config.party_weight
        score = (1.0 - weight) * score + weight * party.effect
        neutral = (1.0 - weight) * neutral + weight * (1.0 - abs(party.effect))
    relevance = share * facts.relevant * _RELEVANCE_OF_ROLE.get(party.role, 1.0)
    role = party.role if party.confidence >= _MIN_ROLE else None
    lines = effects_on(asset, facts.event, facts.regions, role, is_named=True)
    return _stated(asset, facts, score, neutral, lines, relevance, party.role, config)


def _is_same(one: Party, party: Party | None) -> bool:
    """Whether a party is another, or the same name again: of a name that is not known nothing else says so."""
    return party is not None and (one is party or _plain(one.name) == _plain(party.name))


def _plain(name: str) -> str:
    return name.removeprefix("$").casefold()


def _read_market(facts: NewsFacts, asset: Asset, axis: float | None, config: ReadingConfig) -> AssetReading:
    """A share that is not named follows the index of the event's economy, at seven tenths."""
    home = facts.regions[0] if facts.regions else "US"
    index = Asset(asset.symbol, AssetKind.INDEX, asset.name, home)
    is_wide = home in _MAJOR and facts.event is not EventKind.REGULATION  # rules are those of a sector
    if facts.event.group is EventGroup.MARKET or not is_wide or is_market_wrap(facts.text):
        return _silent(asset, 0.2, Silence.OTHERS)
    found = _read_other(facts, index, axis, config)
    return msgspec.structs.replace(
        found,
        asset=AssetKind.EQUITY,
        relevance=rounded(0.4 * found.relevance),
        size_sigmas=rounded(0.7 * found.size_sigmas),
    )


def _read_other(facts: NewsFacts, asset: Asset, axis: float | None, config: ReadingConfig) -> AssetReading:
    """An index, bond, currency or commodity: through the table, along the axis of the event; or as a party named."""
    party = _party_of(facts, asset)
    is_named = party is not None or any(names_asset(one, asset) for one in facts.symbols)
    if not is_named and (
        facts.event.group not in (EventGroup.COMPANY, EventGroup.NONE)
        or (asset.kind is AssetKind.CRYPTO and facts.event in _FAILURES)
    ):
        is_named = is_topic(facts.text, asset.kind)
    regions = facts.regions or (("US",) if facts.event.group in _MARKET_WIDE else ())
    lines = effects_on(asset, facts.event, regions, None if party is None else party.role, is_named=is_named)
    group = facts.event.group
    if facts.event is EventKind.CREDIT_RATING and party is None and _rates_country(facts, asset):
        return _stated(asset, facts, facts.tone, facts.neutral, lines, facts.relevant, None, config)
    if group is EventGroup.COMMODITY and not is_named and asset.kind is not AssetKind.SECTOR:
        return _silent(asset, 0.1, Silence.OTHERS)
    if group in (EventGroup.MARKET, EventGroup.COMPANY, EventGroup.NONE):
        if not is_named:
            return _silent(asset, 0.1, Silence.OTHERS)
        turn = _turn_of(party, asset)
        if party is not None:
            score = party.effect if len(facts.parties) > 1 else _tone(facts, None)[0]
        else:
            score = facts.axis if group is EventGroup.MARKET else facts.tone
        return _stated(
            asset, facts, turn * score, facts.neutral, lines, facts.relevant, None, config, is_signed=True
        )
    if not lines:
        return _silent(asset, 0.2, Silence.NO_LINE)
    if facts.event_confidence < config.min_event and not is_named:
        return _silent(asset, 0.2, Silence.UNCLEAR)
    score, neutral = facts.axis, facts.axis_neutral
    if axis is None and party is not None and abs(party.effect) >= config.min_stated:
        score = _turn_of(party, asset) * party.effect  # its own move is stated: it counts first
        neutral = min(facts.neutral, 1.0 - abs(party.effect))
        return _stated(asset, facts, score, neutral, lines, facts.relevant, None, config, is_signed=True)
    if axis is not None:
        sure = sureness(facts, axis)
        score, neutral = axis * (2.0 * sure - 1.0), float(not axis)
    relevance = facts.relevant * (
        1.0 if is_named or asset.kind in (AssetKind.INDEX, AssetKind.CURRENCY) else 0.7
    )
    return _stated(asset, facts, score, neutral, lines, relevance, None, config)


def _stated(
    asset: Asset,
    facts: NewsFacts,
    score: float,
    neutral: float,
    lines: Sequence[SignedEffect],
    relevance: float,
    role: PartyRole | None,
    config: ReadingConfig,
    *,
    is_signed: bool = False,
) -> AssetReading:
    """The reading of a score along the axis; `is_signed` where it is the asset's own direction already."""
    if not lines:
        return _silent(asset, relevance, Silence.NO_LINE, role)
    signs = {line.sign for line in lines}
    strongest = max(lines, key=lambda line: line.effect.size)
    numbers = tuple(line.effect.number for line in lines)
    volatility = max(line.effect.volatility for line in lines)
    if usual := strongest.effect.usual * _done(facts):
        score, neutral = (score + usual) / 2.0, neutral / 2.0
    sign = 1 if is_signed else next(iter(signs)) if len(signs) == 1 else 0
    silence = _silence(facts, score, neutral, config)
    if silence is Silence.NONE and sign == 0:
        silence = Silence.NO_DIRECTION
    share = stronger_share(score, neutral)
    strength = _STRENGTH[facts.modality] * min(1.0, max(0.0, (share - 0.4) / 0.4))
    size = 0.0 if silence is not Silence.NONE else min(strongest.effect.size * strength, strongest.effect.cap)
    wide = (
        1.0 + (volatility - 1.0) * strength * relevance
        if silence in (Silence.NONE, Silence.NO_DIRECTION)
        else 1.0
    )
    return AssetReading(
        symbol=asset.symbol,
        asset=asset.kind,
        relevance=rounded(relevance),
        role=role,
        direction=0 if silence is not Silence.NONE else (1 if score > 0.0 else -1) * sign,
        size_sigmas=rounded(size),
        volatility=rounded(wide),
        confidence=rounded(share / max(1.0 - neutral, share) if silence is Silence.NONE else 1.0 - share),
        score=rounded(score * (sign or 1)),
        silence=silence,
        lines=numbers,
    )


_SURE_KIND = 0.6  # probability of the kind of event, from which what such events usually mean counts


def _done(facts: NewsFacts) -> int:
    """1 where an event of a sure kind is reported as done or coming, −1 where as undone; 0 where neither is plain."""
    is_plain = (
        facts.event_confidence >= _SURE_KIND
        and facts.modality in (Modality.DID, Modality.WILL)
        and facts.tense is Tense.FACT
    )
    if not is_plain:
        return 0
    if is_undone(facts.text):
        return -1
    return 0 if facts.negated else 1


def stronger_share(score: float, neutral: float) -> float:
    """The probability of the stronger side, from P(up) − P(down) and that of neither."""
    return (1.0 - neutral + abs(score)) / 2.0


def _silence(facts: NewsFacts, score: float, neutral: float, config: ReadingConfig) -> Silence:
    if facts.tense is Tense.RECAP and facts.tense_confidence >= config.recap:
        return Silence.RECAP
    if facts.event in _MOVES and reports_long_move(facts.text):
        return Silence.RECAP
    if facts.action is not None and facts.action.expectation is PolicyExpectation.AS_EXPECTED:
        return Silence.KNOWN
    is_expected = facts.event.group in _SCHEDULED or facts.event in _RESULTS
    if (
        is_expected
        and is_as_expected(facts.text)
        and not any(one.is_good is not None for one in facts.surprises)
    ):
        return Silence.KNOWN
    if score > 0.0 and reassures(facts.text):
        return Silence.UNCLEAR
    share = stronger_share(score, neutral)
    if share >= config.min_share and score != 0.0:
        return Silence.NONE
    if facts.body is not None and facts.body.stance is BodyStance.DISAGREES:
        return Silence.BODY_DISAGREES
    return Silence.NEUTRAL if neutral >= share else Silence.UNCLEAR


def _silent(asset: Asset, relevance: float, why: Silence, role: PartyRole | None = None) -> AssetReading:
    return AssetReading(asset.symbol, asset.kind, rounded(relevance), role, 0, 0.0, 1.0, 0.0, 0.0, why)


def _tone(facts: NewsFacts, axis: float | None) -> tuple[float, float]:
    """Tone and probability of neither. Comparisons of a company's figures with what was expected count with it; figures
    that are better or worse than the ones before them replace it, where none says what was expected.
    """
    tone, neutral = facts.tone, facts.neutral
    if facts.event.group not in _OF_COMPANIES:
        return tone, neutral
    sides = {one.is_good for one in facts.surprises if one.is_good is not None}
    changes = {one.is_good for one in facts.changes}
    if not facts.surprises and len(changes) == 1:
        return (_CHANGE_TONE if True in changes else -_CHANGE_TONE), min(neutral, 1.0 - _CHANGE_TONE)
    side = tone_side(facts.text)
    if side:
        return _PHRASE_TONE * side, min(neutral, 1.0 - _PHRASE_TONE)
    if facts.event.group is not EventGroup.COMPANY:
        return tone, neutral
    if len(sides) == 1 and axis is not None:
        good = 1.0 if sides == {True} else -1.0
        tone, neutral = (tone + good) / 2.0, neutral / 2.0
    return tone, neutral


def _party_of(facts: NewsFacts, asset: Asset) -> Party | None:
    """The party that is the asset, by its symbol, else by its name; of several the one of clearest effect."""
    found = [party for party in facts.parties if any(names_asset(one, asset) for one in party.symbols)]
    if found:
        return max(found, key=lambda party: abs(party.effect))
    span = find_name(facts.text, asset.symbol, asset.name)
    if span is None:
        return None
    start, end = span
    written = _plain(facts.text[start:end])
    over = [
        party
        for party in facts.parties
        if (party.start < end and party.end > start) or _plain(party.name) == written
    ]
    if over:
        return max(over, key=lambda party: abs(party.effect))
    return Party(facts.text[start:end], start, end, PartyRole.SUBJECT, 0.0, facts.tone)


def _rates_country(facts: NewsFacts, asset: Asset) -> bool:
    """Whether a party that is rated is an economy of the asset."""
    rated = (one for one in facts.parties if one.role is not PartyRole.RATER and not one.symbols)
    return any(region in (asset.region, asset.quote) for one in rated for region in find_regions(one.name))


def _is_asset_name(party: Party) -> bool:
    """Whether a party is an index, currency, commodity or central bank, and no company."""
    return bool(party.symbols) and not any(names_company(one, party.name) for one in party.symbols)


def _turn_of(party: Party | None, asset: Asset) -> float:
    """−1 where the asset falls as the party rises: an inverse one, or the party the other side of a currency pair."""
    turn = -1.0 if asset.inverse else 1.0
    if party is None or asset.kind is not AssetKind.CURRENCY:
        return turn
    return turn if asset.region in {asset_of(one).region for one in party.symbols} else -turn


def reading_record(facts: NewsFacts, reading: AssetReading) -> ItemReading:
    """The reading as a decision records it, before anything was earned."""
    return ItemReading(
        event=facts.event.value,
        event_confidence=facts.event_confidence,
        modality=facts.modality.value,
        tense=facts.tense.value,
        role="" if reading.role is None else reading.role.value,
        relevance=reading.relevance,
        score=reading.score,
        direction=reading.direction,
        size_sigmas=reading.size_sigmas,
        volatility=reading.volatility,
        confidence=reading.confidence,
        silence=reading.silence.value,
        lines=reading.lines,
        effects=TABLE_VERSION,
        facts=facts.version,
        reader=facts.reader,
        num_passages=UNSET if facts.body is None else facts.body.num_passages,
        body=UNSET if facts.body is None else facts.body.stance.value,
    )
