"""Who does what to whom in a headline: each sentence once for either party, in active and passive voice."""

import pytest

from htfi.narrative.encoding.linking import Linker
from htfi.narrative.role_rules import Role
from htfi.narrative.roles import MAX_CHARS, roles

LINKER = Linker({})

CASES = [
    # take-overs
    ("Goldman Sachs to buy AIG for 40 billion dollars", {"GS": Role.ACQUIRER, "AIG": Role.TARGET}),
    ("AIG to be bought by Goldman Sachs", {"GS": Role.ACQUIRER, "AIG": Role.TARGET}),
    ("GOLDMAN SACHS TO BUY AIG FOR $40 BILLION", {"GS": Role.ACQUIRER, "AIG": Role.TARGET}),
    ("Goldman Sachs Agrees To Acquire Troubled Insurer AIG", {"GS": Role.ACQUIRER, "AIG": Role.TARGET}),
    ("Takeover of AIG by Goldman Sachs nears", {"GS": Role.ACQUIRER, "AIG": Role.TARGET}),
    ("AIG rejects Goldman Sachs' $40 bln bid", {"GS": Role.ACQUIRER, "AIG": Role.TARGET}),
    ("Pfizer makes $100 bln offer for Merck", {"PFE": Role.ACQUIRER, "MRK": Role.TARGET}),
    ("Microsoft in talks to buy Yahoo, source says", {"MSFT": Role.ACQUIRER, "YHOO": Role.TARGET}),
    ("Intel being courted by Qualcomm", {"QCOM": Role.ACQUIRER, "INTC": Role.TARGET}),
    ("Pfizer is said to be in talks to take over AstraZeneca", {"PFE": Role.ACQUIRER, "AZN": Role.TARGET}),
    ("Intel soars after Oracle bid", {"ORCL": Role.ACQUIRER, "INTC": Role.SUBJECT}),
    ("Oracle scraps Intel takeover", {"ORCL": Role.ACQUIRER, "INTC": Role.TARGET}),
    ("Goldman Sachs would pay $40 billion for AIG", {"GS": Role.ACQUIRER, "AIG": Role.TARGET}),
    ("AIG to sell its Asian life unit to MetLife", {"AIG": Role.SELLER, "MET": Role.ACQUIRER}),
    ("Garmin bid for a maker of maps falls through", {"GRMN": Role.ACQUIRER}),
    ("Caterpillar to buy back $10 bln of its stock", {"CAT": Role.SUBJECT}),
    ("Verizon to acquire Yahoo's internet business", {"VZ": Role.ACQUIRER, "YHOO": Role.SELLER}),
    ("Microsoft and Yahoo in merger talks", {"MSFT": Role.PARTY, "YHOO": Role.PARTY}),
    ("Exxon Mobil raises stake in BP", {"XOM": Role.INVESTOR, "BP": Role.SUBJECT}),
    # ratings
    ("Goldman raises AIG to buy", {"GS": Role.ANALYST, "AIG": Role.RATED}),
    ("AIG cut to sell by Goldman", {"GS": Role.ANALYST, "AIG": Role.RATED}),
    ("Morgan Stanley lowers Apple's price target", {"MS": Role.ANALYST, "AAPL": Role.RATED}),
    ("U.S. could face $2 trillion lending shock: Goldman", {"GS": Role.ANALYST}),
    ("Goldman Sachs raises dividend", {"GS": Role.SUBJECT}),
    ("Goldman sees AIG losing $2 a share", {"GS": Role.ANALYST, "AIG": Role.RATED}),
    ("Tesla falls after JPMorgan downgrade", {"JPM": Role.ANALYST, "TSLA": Role.SUBJECT}),
    # suits
    ("Microsoft sues Google over patents", {"MSFT": Role.PLAINTIFF, "GOOG": Role.DEFENDANT}),
    ("Google sued by Microsoft over patents", {"MSFT": Role.PLAINTIFF, "GOOG": Role.DEFENDANT}),
    ("Oracle wins patent suit against Google", {"ORCL": Role.SUBJECT, "GOOG": Role.DEFENDANT}),
    # orders
    ("Boeing wins $5 bln order from Southwest Airlines", {"BA": Role.SUPPLIER, "LUV": Role.CUSTOMER}),
    ("Southwest Airlines orders 50 jets from Boeing", {"BA": Role.SUPPLIER, "LUV": Role.CUSTOMER}),
    # the rest
    ("Intel rival AMD warns on sales", {"INTC": Role.COMPARED, "AMD": Role.SUBJECT}),
    ("Microsoft falls after Apple warns on sales", {"MSFT": Role.SUBJECT, "AAPL": Role.SUBJECT}),
    ("Goldman Sachs, Morgan Stanley fall as AIG rescue fails", {"GS": Role.SUBJECT, "MS": Role.SUBJECT}),
    ("Nvidia takes aim at Intel with new chip", {"NVDA": Role.SUBJECT, "INTC": Role.UNCLEAR}),
    ("Microsoft to buy Yahoo", {"AAPL": Role.NOT_NAMED, "HOMEMADE": Role.UNCLEAR}),
    # nobody is named, or what is asked about is no company
    ("Fed cuts rates by 100 bp in emergency move", {"GS": Role.SUBJECT, "SPX": Role.SUBJECT}),
    ("Goldman Sachs to buy AIG", {"SPX": Role.SUBJECT, "USDJPY": Role.SUBJECT, "VIX": Role.SUBJECT}),
    ("HOMEMADE to buy AIG", {"HOMEMADE": Role.ACQUIRER, "AIG": Role.TARGET}),
]  # fmt: skip


@pytest.mark.parametrize(("headline", "expected"), CASES, ids=[headline for headline, _ in CASES])
def test_each_company_has_its_part_in_the_headline(headline, expected):
    assert roles(list(expected), headline, LINKER) == expected


def test_only_the_one_that_news_befall_is_judged():
    judged = {role for role in Role if role.is_judged}
    assert judged == {Role.SUBJECT, Role.TARGET, Role.SELLER, Role.DEFENDANT, Role.SUPPLIER, Role.RATED}
    assert not any(role.is_clear for role in (Role.UNCLEAR, Role.PARTY))


def test_a_symbol_with_its_market_is_the_company():
    assert roles(["GS.N"], "Goldman Sachs to buy AIG", LINKER) == {"GS.N": Role.ACQUIRER}


@pytest.mark.parametrize(
    "headline", ["", "§ ¤ to buy §", "Goldman " + "in talks to " * 300, "AIG, " * 300, "\x00\ud800"]
)
def test_a_headline_of_any_kind_has_an_answer(headline):
    assert len(roles(["GS", "AIG"], headline, LINKER)) == 2
    assert roles(["GS"], "x" * MAX_CHARS + " Goldman Sachs to buy AIG", LINKER) == {"GS": Role.SUBJECT}
