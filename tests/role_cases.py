"""Headlines with their parties in brackets behind their roles, and how they are read."""

import re

from htfi.narrative.facts.party_names import NamedSpan
from htfi.narrative.facts.record import EventKind, PartyRole

TAKEOVER, RATING, LAWSUIT, DEAL, STAKE = (
    EventKind.ACQUISITION, EventKind.RATING, EventKind.LAWSUIT, EventKind.DEAL, EventKind.STAKE,
)  # fmt: skip

# A name is in brackets behind its role.
CASES = [
    (TAKEOVER, "acquirer[Ambrel] agrees to acquire target[Tosk Dental] for $900 mln"),
    (TAKEOVER, "target[Tosk Dental] to be acquired by acquirer[Ambrel]"),
    (TAKEOVER, "target[Tosk Dental] taken over by acquirer[Ambrel] in cash deal"),
    (TAKEOVER, "acquirer[Ambrel] lifts its bid for target[Tosk Dental]"),
    (TAKEOVER, "target[Tosk Dental] spurns raised acquirer[Ambrel] offer"),
    (TAKEOVER, "target[Tosk Dental] accepts $900 mln bid from acquirer[Ambrel]"),
    (TAKEOVER, "acquirer[Ambrel] drops target[Tosk Dental] takeover"),
    (TAKEOVER, "target[Tosk Dental] rockets 40% on acquirer[Ambrel]'s buyout proposal"),
    (TAKEOVER, "target[Tosk Dental] slumps as acquirer[Ambrel] withdraws offer"),
    (TAKEOVER, "acquirer[Ambrel] backs out of target[Tosk Dental] deal"),
    (TAKEOVER, "acquirer[Ambrel] outbids loser[Fennimor] for target[Tosk Dental]"),
    (TAKEOVER, "Purchase of target[Tosk Dental] by acquirer[Ambrel] cleared"),
    (EventKind.DIVESTITURE, "seller[Quorane] sells its clinics business to acquirer[Ambrel]"),
    (EventKind.DIVESTITURE, "acquirer[Ambrel] buys clinics unit from seller[Quorane]"),
    (STAKE, "investor[Pellard Capital] discloses 7.2% stake in subject[Quorane]"),
    (STAKE, "investor[Pellard Capital] trims subject[Quorane] stake"),
    (RATING, "rated[Quorane] cut to underweight at rater[Stell Marsh]"),
    (RATING, "rater[Stell Marsh] raises rated[Quorane] to outperform"),
    (RATING, "rater[Stell Marsh]: rated[Quorane] raised to buy"),
    (RATING, "rated[Quorane] sinks after rater[Stell Marsh] lowers price target"),
    (RATING, "rated[Quorane] is overvalued, says rater[Stell Marsh]"),
    (LAWSUIT, "plaintiff[Tresk] sues defendant[Wendal Audio] over patents"),
    (LAWSUIT, "defendant[Wendal Audio] sued by plaintiff[Tresk] over patents"),
    (LAWSUIT, "Judge throws out plaintiff[Tresk] lawsuit against defendant[Wendal Audio]"),
    (LAWSUIT, "Jury orders defendant[Wendal Audio] to pay plaintiff[Tresk] $40 mln"),
    (LAWSUIT, "Court rules in favour of plaintiff[Tresk] against defendant[Wendal Audio]"),
    (LAWSUIT, "defendant[Wendal Audio] gets dismissal of plaintiff[Tresk] claims"),
    (LAWSUIT, "plaintiff[Tresk] and defendant[Wendal Audio] end patent row"),
    (LAWSUIT, "Judge dismisses plaintiff[Tresk] appeal in defendant[Wendal Audio] case"),
    (LAWSUIT, "Jury awards plaintiff[Tresk] $40 mln in patent fight with defendant[Wendal Audio]"),
    (DEAL, "customer[Osk Lines] moves work from loser[Holmgard] to winner[Rovex]"),
    (EventKind.GUIDANCE, "subject[Holmgard]'s profit warning drags peer[Rovex] lower"),
    (TAKEOVER, "target[Tosk Dental] investors oppose acquirer[Ambrel] bid"),
    (TAKEOVER, "acquirer[Fennimor] tops loser[Ambrel] bid for target[Tosk Dental]"),
    (TAKEOVER, "target[Tosk Dental] falls as takeover by acquirer[Ambrel] stalls"),
    (DEAL, "winner[Rovex] beats loser[Holmgard] to Baltic ferry contract"),
    (DEAL, "loser[Holmgard] loses ferry contract to winner[Rovex]"),
    (DEAL, "Ferry contract goes to winner[Rovex]"),
    (DEAL, "customer[Osk Lines] chooses winner[Rovex] over loser[Holmgard]"),
    (DEAL, "customer[Osk Lines] ditches loser[Holmgard] for winner[Rovex]"),
    (DEAL, "winner[Rovex] snatches market share from loser[Holmgard]"),
    (DEAL, "supplier[Rovex] wins order from customer[Osk Lines]"),
    (DEAL, "customer[Osk Lines] awards ferry contract to supplier[Rovex]"),
    (DEAL, "customer[Osk Lines] buys six vessels from supplier[Rovex]"),
    (DEAL, "supplier[Rovex] to supply engines to customer[Osk Lines]"),
    (DEAL, "supplier[Rovex] chosen by customer[Osk Lines]"),
    (DEAL, "customer[Osk Lines] cancels supplier[Rovex] order"),
    (DEAL, "partner[Rovex] and partner[Holmgard] team up on ferries"),
    (DEAL, "partner[Rovex] forms alliance with partner[Holmgard]"),
    (TAKEOVER, "acquirer[Ambrel] calls off target[Tosk Dental] merger"),
    (TAKEOVER, "target[Tosk Dental] plunges after court bars acquirer[Ambrel] takeover"),
    (TAKEOVER, "target[Tosk Dental] says no to acquirer[Ambrel]"),
    (TAKEOVER, "target[Tosk Dental] urges holders to shun acquirer[Ambrel] bid"),
    (TAKEOVER, "target[Tosk Dental] gives in to acquirer[Ambrel]"),
    (TAKEOVER, "acquirer[Ambrel] backs off target[Tosk Dental]"),
    (TAKEOVER, "acquirer[Ambrel] buys seller[Quorane] clinics business"),
    (EventKind.DIVESTITURE, "seller[Quorane] spins target[Tosk Dental] off to acquirer[Ambrel]"),
    (STAKE, "investor[Pellard Capital] unloads 8 million subject[Quorane] shares"),
    (TAKEOVER, "investor[Pellard Capital] ploughs $4 bln into subject[Quorane]"),
    (RATING, "rater[Stell Marsh] names rated[Quorane] its favourite software stock"),
    (LAWSUIT, "defendant[Wendal Audio] fends off most of plaintiff[Tresk]'s antitrust claims"),
    (LAWSUIT, "defendant[Wendal Audio] pays plaintiff[Tresk] $40 mln to end recorder patent case"),
    (LAWSUIT, "plaintiff[Tresk] loses appeal against defendant[Wendal Audio] in patent fight"),
    (LAWSUIT, "defendant[Wendal Audio] did not infringe plaintiff[Tresk] patents, jury finds"),
    (LAWSUIT, "Jury clears defendant[Wendal Audio] of breaching plaintiff[Tresk] patents"),
    (LAWSUIT, "plaintiff[Tresk] shares double as jury awards it $40 mln from defendant[Wendal Audio]"),
    (LAWSUIT, "plaintiff[Tresk] demands $40 mln from defendant[Wendal Audio]"),
    (LAWSUIT, "defendant[Wendal Audio] fails to overturn plaintiff[Tresk]'s $40 mln verdict"),
    (DEAL, "winner[Rovex] wrests ferry work from loser[Holmgard]"),
    (DEAL, "winner[Rovex] wins customer[Osk Lines] ferry contract from loser[Holmgard]"),
    (DEAL, "winner[Rovex] pushes loser[Holmgard] aside to win ferry order"),
    (DEAL, "loser[Holmgard] lags winner[Rovex] in ferry sales"),
    (DEAL, "winner[Rovex] takes loser[Holmgard]'s crown as biggest yard"),
    (DEAL, "loser[Holmgard] sheds market share to winner[Rovex]"),
    (DEAL, "loser[Holmgard] protests award of ferry contract to winner[Rovex]"),
    (DEAL, "customer[Osk Lines] rejects loser[Holmgard] in favour of winner[Rovex]"),
    (EventKind.INDEX_CHANGE, "winner[Rovex] joins FTSE 100 while loser[Holmgard] leaves"),
    (EventKind.INDEX_CHANGE, "loser[Holmgard] makes way for winner[Rovex] in benchmark index"),
    (DEAL, "customer[Osk Lines] to stop buying supplier[Rovex] engines"),
    (DEAL, "customer[Osk Lines] signs engine supply deal with supplier[Rovex]"),
    (DEAL, "customer[Osk Lines] halves purchases from supplier[Rovex]"),
    (DEAL, "partner[Rovex] and partner[Holmgard] to build battery plant"),
    (EventKind.GUIDANCE, "peer[Rovex] falls after rival subject[Holmgard] cuts outlook"),
    (EventKind.GUIDANCE, "subject[Holmgard] warning bodes ill for peer[Rovex]"),
    (LAWSUIT, "defendant[Wendal Audio] reaches $5 bln settlement with merchants"),
]  # fmt: skip
_MARK = re.compile(r"([a-z]+)\[([^\]]+)\]")


def parsed(marked: str) -> tuple[str, list[NamedSpan], list[PartyRole]]:
    """The text without marks, the parties' places in it, and their roles."""
    text, after = "", 0
    spans: list[NamedSpan] = []
    for mark in _MARK.finditer(marked):
        text += marked[after : mark.start()]
        spans.append(NamedSpan(len(text), len(text) + len(mark[2]), ()))
        text, after = text + mark[2], mark.end()
    return text + marked[after:], spans, [PartyRole(mark[1]) for mark in _MARK.finditer(marked)]
