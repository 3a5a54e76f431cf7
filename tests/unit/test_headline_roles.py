"""Who does what to whom in a headline: each sentence once for either party, in active and passive voice."""

import pytest

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.headline_roles import MAX_CHARS, CompanyRole, company_roles

LINKER = EntityLinker({})

CASES = [
    # take-overs
    ("Goldman Sachs to buy AIG for 40 billion dollars", {"GS": CompanyRole.ACQUIRER, "AIG": CompanyRole.TARGET}),
    ("AIG to be bought by Goldman Sachs", {"GS": CompanyRole.ACQUIRER, "AIG": CompanyRole.TARGET}),
    ("GOLDMAN SACHS TO BUY AIG FOR $40 BILLION", {"GS": CompanyRole.ACQUIRER, "AIG": CompanyRole.TARGET}),
    ("Goldman Sachs Agrees To Acquire Troubled Insurer AIG", {"GS": CompanyRole.ACQUIRER, "AIG": CompanyRole.TARGET}),
    ("Takeover of AIG by Goldman Sachs nears", {"GS": CompanyRole.ACQUIRER, "AIG": CompanyRole.TARGET}),
    ("AIG rejects Goldman Sachs' $40 bln bid", {"GS": CompanyRole.ACQUIRER, "AIG": CompanyRole.TARGET}),
    ("Pfizer makes $100 bln offer for Merck", {"PFE": CompanyRole.ACQUIRER, "MRK": CompanyRole.TARGET}),
    ("Microsoft in talks to buy Yahoo, source says", {"MSFT": CompanyRole.ACQUIRER, "YHOO": CompanyRole.TARGET}),
    ("Intel being courted by Qualcomm", {"QCOM": CompanyRole.ACQUIRER, "INTC": CompanyRole.TARGET}),
    ("Pfizer is said to be in talks to take over AstraZeneca",
     {"PFE": CompanyRole.ACQUIRER, "AZN": CompanyRole.TARGET}),
    ("Intel soars after Oracle bid", {"ORCL": CompanyRole.ACQUIRER, "INTC": CompanyRole.SUBJECT}),
    ("Oracle scraps Intel takeover", {"ORCL": CompanyRole.ACQUIRER, "INTC": CompanyRole.TARGET}),
    ("Goldman Sachs would pay $40 billion for AIG", {"GS": CompanyRole.ACQUIRER, "AIG": CompanyRole.TARGET}),
    ("AIG to sell its Asian life unit to MetLife", {"AIG": CompanyRole.SELLER, "MET": CompanyRole.ACQUIRER}),
    ("Garmin bid for a maker of maps falls through", {"GRMN": CompanyRole.ACQUIRER}),
    ("Caterpillar to buy back $10 bln of its stock", {"CAT": CompanyRole.SUBJECT}),
    ("Verizon to acquire Yahoo's internet business", {"VZ": CompanyRole.ACQUIRER, "YHOO": CompanyRole.SELLER}),
    ("Microsoft and Yahoo in merger talks", {"MSFT": CompanyRole.PARTY, "YHOO": CompanyRole.PARTY}),
    ("Exxon Mobil raises stake in BP", {"XOM": CompanyRole.INVESTOR, "BP": CompanyRole.SUBJECT}),
    # ratings
    ("Goldman raises AIG to buy", {"GS": CompanyRole.ANALYST, "AIG": CompanyRole.RATED}),
    ("AIG cut to sell by Goldman", {"GS": CompanyRole.ANALYST, "AIG": CompanyRole.RATED}),
    ("Morgan Stanley lowers Apple's price target", {"MS": CompanyRole.ANALYST, "AAPL": CompanyRole.RATED}),
    ("U.S. could face $2 trillion lending shock: Goldman", {"GS": CompanyRole.ANALYST}),
    ("Goldman Sachs raises dividend", {"GS": CompanyRole.SUBJECT}),
    ("Goldman sees AIG losing $2 a share", {"GS": CompanyRole.ANALYST, "AIG": CompanyRole.RATED}),
    ("Tesla falls after JPMorgan downgrade", {"JPM": CompanyRole.ANALYST, "TSLA": CompanyRole.SUBJECT}),
    # suits
    ("Microsoft sues Google over patents", {"MSFT": CompanyRole.PLAINTIFF, "GOOG": CompanyRole.DEFENDANT}),
    ("Google sued by Microsoft over patents", {"MSFT": CompanyRole.PLAINTIFF, "GOOG": CompanyRole.DEFENDANT}),
    ("Oracle wins patent suit against Google", {"ORCL": CompanyRole.SUBJECT, "GOOG": CompanyRole.DEFENDANT}),
    # orders
    ("Boeing wins $5 bln order from Southwest Airlines", {"BA": CompanyRole.SUPPLIER, "LUV": CompanyRole.CUSTOMER}),
    ("Southwest Airlines orders 50 jets from Boeing", {"BA": CompanyRole.SUPPLIER, "LUV": CompanyRole.CUSTOMER}),
    # the rest
    ("Intel rival AMD warns on sales", {"INTC": CompanyRole.COMPARED, "AMD": CompanyRole.SUBJECT}),
    ("Microsoft falls after Apple warns on sales", {"MSFT": CompanyRole.SUBJECT, "AAPL": CompanyRole.SUBJECT}),
    ("Goldman Sachs, Morgan Stanley fall as AIG rescue fails", {"GS": CompanyRole.SUBJECT, "MS": CompanyRole.SUBJECT}),
    ("Nvidia takes aim at Intel with new chip", {"NVDA": CompanyRole.SUBJECT, "INTC": CompanyRole.UNCLEAR}),
    ("Microsoft to buy Yahoo", {"AAPL": CompanyRole.NOT_NAMED, "HOMEMADE": CompanyRole.UNCLEAR}),
    # nobody is named, or what is asked about is no company
    ("Fed cuts rates by 100 bp in emergency move", {"GS": CompanyRole.SUBJECT, "SPX": CompanyRole.SUBJECT}),
    ("Goldman Sachs to buy AIG",
     {"SPX": CompanyRole.SUBJECT, "USDJPY": CompanyRole.SUBJECT, "VIX": CompanyRole.SUBJECT}),
    ("HOMEMADE to buy AIG", {"HOMEMADE": CompanyRole.ACQUIRER, "AIG": CompanyRole.TARGET}),
]  # fmt: skip


@pytest.mark.parametrize(("headline", "expected"), CASES, ids=[headline for headline, _ in CASES])
def test_each_company_has_its_part_in_the_headline(headline, expected):
    assert company_roles(list(expected), headline, LINKER) == expected


def test_only_the_one_that_news_befall_is_judged():
    judged = {role for role in CompanyRole if role.is_judged}
    assert judged == {
        CompanyRole.SUBJECT,
        CompanyRole.TARGET,
        CompanyRole.SELLER,
        CompanyRole.DEFENDANT,
        CompanyRole.SUPPLIER,
        CompanyRole.RATED,
    }
    assert not any(role.is_clear for role in (CompanyRole.UNCLEAR, CompanyRole.PARTY))


def test_a_symbol_with_its_market_is_the_company():
    assert company_roles(["GS.N"], "Goldman Sachs to buy AIG", LINKER) == {"GS.N": CompanyRole.ACQUIRER}


@pytest.mark.parametrize(
    "headline", ["", "§ ¤ to buy §", "Goldman " + "in talks to " * 300, "AIG, " * 300, "\x00\ud800"]
)
def test_a_headline_of_any_kind_has_an_answer(headline):
    assert len(company_roles(["GS", "AIG"], headline, LINKER)) == 2
    assert company_roles(["GS"], "x" * MAX_CHARS + " Goldman Sachs to buy AIG", LINKER) == {
        "GS": CompanyRole.SUBJECT
    }
