"""Kinds of events by the words of several vendors."""

import pytest

from htfi.calendar.recognition import (
    currency_of_country,
    economy_of,
    event_kind,
    figure_name,
    plain_name,
    read_rules,
)
from htfi.domain.errors import InvalidInput
from htfi.domain.time import parse_timestamp


@pytest.mark.parametrize(
    ("currency", "name", "kind"),
    [
        # ForexFactory
        ("USD", "Non-Farm Employment Change", "us_payrolls"),
        ("USD", "ADP Non-Farm Employment Change", "us_adp_employment"),
        ("CAD", "ADP Non-Farm Employment Change", "ca_adp_employment"),
        ("USD", "Core CPI m/m", "us_core_cpi"),
        ("USD", "CPI y/y", "us_cpi"),
        ("GBP", "CPI y/y", "uk_cpi"),
        ("EUR", "German Prelim CPI m/m", "de_cpi"),
        ("EUR", "CPI Flash Estimate y/y", "ea_cpi"),
        ("EUR", "Core CPI Flash Estimate y/y", "ea_core_cpi"),
        ("USD", "Federal Funds Rate", "fomc_decision"),
        ("EUR", "HCOB Germany Manufacturing PMI", "de_pmi_manufacturing"),
        ("USD", "S&P Global US Services PMI", "us_pmi_services"),
        ("USD", "Balance of Trade", "us_trade_balance"),
        ("USD", "EIA Crude Oil Stocks Change", "us_crude_inventories"),
        ("USD", "EIA Natural Gas Stocks Change", "us_natural_gas_storage"),
        ("USD", "Quad Witching", "option_expiry"),
        ("USD", "FOMC Statement", "fomc_decision"),
        ("USD", "FOMC Meeting Minutes", "fomc_minutes"),
        ("USD", "FOMC Press Conference", "fomc_press_conference"),
        ("EUR", "Main Refinancing Rate", "ecb_decision"),
        ("EUR", "Minimum Bid Rate", "ecb_decision"),
        ("EUR", "ECB Press Conference", "ecb_press_conference"),
        ("GBP", "Official Bank Rate", "boe_decision"),
        ("GBP", "MPC Official Bank Rate Votes", "boe_votes"),
        ("GBP", "Claimant Count Change", "uk_employment"),
        ("AUD", "Cash Rate", "rba_decision"),
        ("NZD", "Official Cash Rate", "rbnz_decision"),
        ("CAD", "Overnight Rate", "boc_decision"),
        ("CHF", "Libor Rate", "snb_decision"),
        ("JPY", "Tankan Manufacturing Index", "jp_tankan"),
        ("CNY", "Caixin Manufacturing PMI", "cn_pmi"),
        ("USD", "Bank Holiday", "bank_holiday"),
        ("USD", "ISM Non-Manufacturing PMI", "us_ism_services"),
        ("EUR", "German ifo Business Climate", "de_ifo"),
        # DailyFX
        ("USD", "Change in Non-farm Payrolls (SEP)", "us_payrolls"),
        ("USD", "Consumer Price Index Ex Food & Energy (YoY) (MAR)", "us_core_cpi"),
        ("EUR", "German Consumer Price Index - EU Harmonised (YoY) (SEP)", "de_cpi"),
        ("EUR", "Euro-Zone Consumer Price Index - Core (YoY)", "ea_core_cpi"),
        ("USD", "Federal Open Market Committee Rate Decision", "fomc_decision"),
        ("USD", "FOMC Rate Decision (Upper Bound) (1 AUG)", "fomc_decision"),
        ("USD", "Fed Releases Minutes from April 29-30 FOMC Meeting", "fomc_minutes"),
        ("CHF", "Swiss National Bank Rate Decision", "snb_decision"),
        ("JPY", "Bank of Japan Rate Decision", "boj_decision"),
        ("GBP", "Bank of England Quarterly Inflation Report", "boe_inflation_report"),
        ("USD", "U. of Michigan Confidence (OCT P)", "us_consumer_sentiment"),
        ("USD", "Gross Domestic Product (Annualized) (3Q A)", "us_gdp"),
        ("USD", "US Markets Closed for Presidents Day", "market_closed"),
        # Investing.com, Bloomberg and Trading Economics write so
        ("USD", "Nonfarm Payrolls  (Mar)", "us_payrolls"),
        ("USD", "Change in Nonfarm Payrolls", "us_payrolls"),
        ("USD", "Non Farm Payrolls MAR", "us_payrolls"),
        ("USD", "Core Inflation Rate YoY FEB", "us_core_cpi"),
        ("USD", "Inflation Rate YoY FEB", "us_cpi"),
        ("USD", "CPI Ex Food and Energy MoM", "us_core_cpi"),
        ("USD", "FOMC Rate Decision (Upper Bound)", "fomc_decision"),
        ("USD", "Fed Interest Rate Decision", "fomc_decision"),
        ("EUR", "ECB Interest Rate Decision  (Apr)", "ecb_decision"),
        ("EUR", "ECB Main Refinancing Rate", "ecb_decision"),
        ("EUR", "Germany ZEW Survey Expectations", "de_zew"),
        ("GBP", "BoE Interest Rate Decision  (May)", "boe_decision"),
        ("GBP", "Jobless Claims Change", "uk_employment"),
        ("JPY", "BoJ Interest Rate Decision", "boj_decision"),
        ("USD", "S&P Global US Services PMI Flash", "us_pmi_services"),
        ("USD", "U. of Mich. Sentiment", "us_consumer_sentiment"),
        ("USD", "JOLTs Job Openings (Feb)", "us_job_openings"),
        ("USD", "GDP Growth Rate QoQ Adv", "us_gdp"),
        ("USD", "PCE Core Deflator YoY", "us_core_pce"),
        ("USD", "PCE Price Index (YoY)", "us_pce"),
        ("USD", "ISM Services Index", "us_ism_services"),
        ("EUR", "HCOB Eurozone Manufacturing PMI", "ea_pmi_manufacturing"),
        ("", "Bank of Japan Governor Kuroda Gives Monetary Policy Statement", "boj_governor_speaks"),
        ("", "OPEC Meetings", "opec_meeting"),
        ("USD", "Fruit Fly Census", ""),
        ("", "Interest Rate Decision", ""),
        # Statistical offices and banks themselves, whose calendars state no currency
        ("", "Employment Situation for October", "us_payrolls"),
        ("", "Unemployment Insurance Weekly Claims Report", "us_jobless_claims"),
        ("", "Advance Monthly Sales for Retail and Food Services", "us_retail_sales"),
        ("", "New Residential Construction", "us_housing_starts"),
        ("", "Personal Income and Outlays", "us_personal_spending"),
        ("", "Industrial Production and Capacity Utilization - G.17", "us_industrial_production"),
        ("", "S&P Global US Services PMI Flash", "us_pmi_services"),
        ("", "Labour market overview, UK", "uk_employment"),
        ("", "Retail sales, Great Britain", "uk_retail_sales"),
        ("", "Euro area flash inflation", "ea_cpi"),
        ("", "Labour Force, Australia", "au_employment"),
        ("", "ECB Interest Rate Decision", "ecb_decision"),
        ("", "BoE Bank Rate", "boe_decision"),
        ("", "FOMC Minutes", "fomc_minutes"),
        ("", "Consumer Price Index", ""),
        ("", "Joint statement of the Fed and the ECB on retail sales", ""),
    ],
)  # fmt: skip
def test_names_of_vendors_have_their_kinds(currency: str, name: str, kind: str) -> None:
    assert event_kind(name, currency) == kind


@pytest.mark.parametrize(
    ("name", "kind", "currency"),
    [
        ("Employment Situation for October", "us_payrolls", "USD"),
        ("Retail sales, Great Britain", "uk_retail_sales", "GBP"),
        ("BoJ Summary of Opinions", "boj_minutes", "JPY"),
        ("Flash PMI", "de_pmi_services", "EUR"),
        ("Consumer Price Index", "", ""),
        ("Quadruple witching", "option_expiry", ""),
    ],
)
def test_words_and_kinds_say_whose_event_it_is(name: str, kind: str, currency: str) -> None:
    assert economy_of(name, kind) == currency


@pytest.mark.parametrize(
    ("currency", "name", "kind"),
    [
        ("USD", "Construction Spending m/m", "us_construction_spending"),
        ("USD", "Capacity Utilization Rate", "us_capacity_utilization"),
        ("", "Industrial Production and Capacity Utilization - G.17", "us_industrial_production"),
        ("USD", "NAHB Housing Market Index (OCT)", "us_nahb"),
        ("USD", "Richmond Manufacturing Index", "us_richmond_fed"),
        ("USD", "Richmond Fed Manufact. Index (JAN)", "us_richmond_fed"),
        ("USD", "Fed's Barkin (Richmond Fed) Speaks", "fed_member_speaks"),
        ("USD", "Dallas Fed Manufacturing Index", "us_dallas_fed"),
        ("USD", "Chicago Fed National Activity Index", "us_chicago_fed_activity"),
        ("USD", "Wards Total Vehicle Sales", "us_vehicle_sales"),
        ("USD", "Revised Nonfarm Productivity q/q", "us_productivity"),
        ("USD", "Nonfarm Productivity QoQ Prel", "us_productivity"),
        ("USD", "Private Nonfarm Payrolls  (Mar)", "us_private_payrolls"),
        ("USD", "Manufacturing Payrolls", "us_manufacturing_payrolls"),
        ("USD", "API Weekly Crude Oil Stock", "us_api_inventories"),
        ("USD", "API Crude Oil Stock Change", "us_api_inventories"),
        ("USD", "Gasoline Inventories", "us_gasoline_inventories"),
        ("USD", "Baker Hughes U.S. Rig Count", "us_rig_count"),
        ("USD", "U.S. to Sell 4-Week Bills", "us_bond_auction"),
        ("USD", "S&P/Case-Shiller Composite-20 (YoY) (AUG)", "us_house_prices"),
        ("USD", "Bank Stress Test Results", "us_bank_stress_test"),
        ("USD", "Treasury Currency Report", "us_currency_report"),
        ("USD", "Fed Monetary Policy Report", "fed_monetary_policy_report"),
        ("CAD", "Gov Council Member Lane Speaks", "boc_member_speaks"),
        ("CAD", "IPPI m/m", "ca_ppi"),
        ("CAD", "NHPI m/m", "ca_house_prices"),
        ("CAD", "RMPI m/m", "ca_raw_material_prices"),
        ("CAD", "Foreign Securities Purchases", "ca_securities_flows"),
        ("GBP", "Chancellor Hunt Speaks", "uk_chancellor_speaks"),
        ("GBP", "BRC Shop Price Index y/y", "uk_shop_prices"),
        ("GBP", "Index of Services 3m/3m", "uk_services_output"),
        ("GBP", "CBI Distributive Trades (OCT)", "uk_retail_sales"),
        ("EUR", "French Final Private Payrolls q/q", "fr_private_payrolls"),
        ("EUR", "Sentix Investor Confidence", "ea_sentix"),
        ("EUR", "German WPI m/m", "de_wholesale_prices"),
        ("EUR", "Retail PMI", "ea_pmi_retail"),
        ("EUR", "German Buba Monthly Report", "de_bundesbank_report"),
        ("EUR", "Euro-Zone Purchasing Manager Index Services (JUL A)", "ea_pmi_services"),
        ("AUD", "AIG Construction Index", "au_aig_construction"),
        ("AUD", "MI Inflation Gauge m/m", "au_inflation_gauge"),
        ("AUD", "WPI q/q", "au_earnings"),
        ("AUD", "Skilled Vacancies (MoM) (OCT)", "au_job_advertisements"),
        ("NZD", "BusinessNZ Manufacturing Index", "nz_pmi_manufacturing"),
        ("NZD", "ANZ Commodity Prices m/m", "nz_commodity_prices"),
        ("NZD", "FPI m/m", "nz_food_prices"),
        ("JPY", "Tertiary Industry Activity m/m", "jp_tertiary_industry"),
        ("JPY", "SPPI y/y", "jp_services_prices"),
        ("JPY", "Eco Watchers Survey: Current (OCT)", "jp_economy_watchers"),
        ("JPY", "Jobs/applications ratio  (Mar)", "jp_job_ratio"),
        ("JPY", "Labor Cash Earnings (YoY) (SEP)", "jp_earnings"),
        ("CHF", "SVME-Purchasing Managers Index (JUL)", "ch_pmi_manufacturing"),
        ("CHF", "Total Sight Deposits (JUL 24)", "ch_sight_deposits"),
        ("CHF", "SNB Sight Deposit Interest Rate", "snb_decision"),
        ("CNY", "Fixed Asset Investment ytd/y", "cn_fixed_investment"),
        ("CNY", "Industrial Profits (YTD) (YoY) (FEB)", "cn_company_profits"),
    ],
)  # fmt: skip
def test_releases_of_less_weight_have_their_kinds_too(currency: str, name: str, kind: str) -> None:
    assert event_kind(name, currency) == kind


@pytest.mark.parametrize(
    ("currency", "name"),
    [
        ("USD", "Daylight Saving Time Shift"),
        ("All", "WEF Annual Meetings"),
        ("USD", "Fed Gov Nomination Hearings"),
        ("GBP", "Stimulus Package Announcement"),
        ("AUD", "RBA Annual Report"),
        ("NZD", "RBNZ Statement of Intent"),
        ("CNY", "NBS Press Conference"),
        ("USD", "US imposes 34 billion worth of tariffs on China"),
        ("USD", "Bank lending rules published"),
        ("USD", "Vehicle recall announced"),
        ("GBP", "UK Chancellor Hammond Answers Questions in Parliament"),
        ("USD", "Company to sell its commodity unit"),
        ("EUR", "Deutsche Bank capacity review"),
        ("USD", "Credit card company results"),
        ("USD", "Services trade agreement"),
    ],
)
def test_names_that_are_no_such_release_stay_without_a_kind(currency: str, name: str) -> None:
    assert event_kind(name, currency) == ""


def test_a_companys_event_is_of_no_economy() -> None:
    assert event_kind("Treasury Wine Estates retail sales", "", "TWE") == "earnings"


def test_a_countrys_own_column_tells_whose_figure_it_is() -> None:
    assert event_kind("Inflation Rate YoY Flash", "EUR", country="France") == "fr_cpi"
    assert event_kind("Interest Rate Decision", "EUR", country="Euro Area") == "ecb_decision"
    assert event_kind("ECB Interest Rate Decision", "EUR", country="Euro Area") == "ecb_decision"
    assert [currency_of_country(one) for one in ("Germany", "us", "Euro Area", "JPY", "Mars")] == [
        "EUR", "USD", "EUR", "JPY", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "day", "kind"),
    [
        ("Fed's Powell Speaks in New York", "2017-06-01", "fed_member_speaks"),
        ("Fed's Powell Speaks in New York", "2018-06-01", "fed_chair_speaks"),
        ("Fed's Bernanke Speaks", "2010-06-01", "fed_chair_speaks"),
        ("Fed's Bernanke Speaks", "2015-06-01", "fed_member_speaks"),
    ],
)
def test_who_is_in_office_is_decided_by_the_day(name: str, day: str, kind: str) -> None:
    assert event_kind(name, "USD", time_ns=parse_timestamp(f"{day}T12:00:00Z")) == kind


def test_results_of_a_company_are_earnings_whatever_they_are_called() -> None:
    assert event_kind("Q3 2024 Apple Inc. report", "", "AAPL") == "earnings"
    assert event_kind("Quarterly EPS", "USD", "AAPL") == "earnings"


def test_a_name_is_compared_without_periods_and_signs() -> None:
    assert plain_name("German Prelim CPI m/m (SEP P)") == "german cpi"
    assert plain_name("U.S. Fed's Beige Book") == "us fed beige book"
    assert figure_name("Consumer Price Index (YoY) (SEP)") == "consumer price index (yoy)"
    assert figure_name("CPI m/m") == "cpi m/m"


@pytest.mark.parametrize("rule", [{"kind": "x"}, {"names": ["x"]}, {"kind": "x", "names": ["x"], "if": "y"}])
def test_a_rule_that_is_none_is_said(rule: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="rule 1: a rule has kind and names"):
        read_rules({"countries": {}, "rule": [rule]})
