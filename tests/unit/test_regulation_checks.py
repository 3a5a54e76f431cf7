"""The monitors' checks: of each one record that keeps the rule and one that breaks it, and what cannot be judged."""

from decimal import Decimal

from htfi.domain.orders import (
    AlertRaised,
    CancelRequest,
    InstrumentTerms,
    LimitOverride,
    MassCancelRequest,
    OrderReplaced,
    Reconciled,
    ReplaceRequest,
    TradingDisabled,
    TradingEnabled,
)
from htfi.governance.regulation.catalogue import CHECKS
from htfi.governance.regulation.findings import MAX_KEPT_FINDINGS, CheckOutcome, RuleRegime, Severity
from htfi.governance.regulation.monitor import Span, run_checks
from order_streams import (
    BUY,
    SELL,
    ack,
    at,
    cancel,
    fill,
    found,
    is_clear,
    judge,
    limits,
    market,
    new,
    refused,
)


def many(num: int, spacing_s: float, start_s: float = 0.0, **fields):
    return [new(f"o{start_s}-{k}", start_s + k * spacing_s, **fields) for k in range(num)]


def test_ids_are_unique_and_each_check_names_an_article() -> None:
    assert len({one.id for one in CHECKS}) == len(CHECKS) > 35
    assert all(one.articles and one.reads and one.not_judged for one in CHECKS)


def test_without_anything_nothing_is_judged() -> None:
    results, counts = run_checks([], CHECKS)
    assert {one.outcome for one in results} == {CheckOutcome.NOT_JUDGED}
    assert counts.num_order_events == 0


# Pre-trade limits


def test_price_collar() -> None:
    collar = limits(price_collar=0.05)
    assert is_clear("price-collar", [collar, market(1), new("o", 2, price="104.00"), ack("o", 3)])
    (what,) = found("price-collar", [collar, market(1), new("o", 2, price="106.00"), ack("o", 3)])
    assert what.startswith("a distance from the market of 0.06 is above the limit of 0.05 for firm")


def test_an_order_that_the_gate_refused_shows_that_the_limit_works() -> None:
    items = [limits(price_collar=0.05), market(1), new("o", 2, price="150.00"), refused("o", 2.1)]
    assert is_clear("price-collar", items)


def test_a_limit_that_is_missing_is_for_review() -> None:
    result = judge("price-collar", [limits(max_order_quantity=5), market(1), new("o", 2)])
    assert [one.severity for one in result.findings] == [Severity.REVIEW]


def test_without_limits_or_market_data_a_collar_cannot_be_judged() -> None:
    assert judge("price-collar", [market(1), new("o", 2)]).outcome is CheckOutcome.NOT_JUDGED
    result = judge("price-collar", [limits(price_collar=0.05), new("o", 2)])
    assert [one.reason for one in result.unjudged] == ["no market data of the instrument before the order"]


def test_order_value_counts_lots_and_multiplier() -> None:
    terms = InstrumentTerms(at_ns=at(0), instrument="ACME", lot_size=100, multiplier=Decimal(2))
    value = limits(max_order_value=Decimal(100_000))
    assert is_clear("order-value", [value, new("o", 1), ack("o", 2)])
    assert "200,000" in found("order-value", [terms, value, new("o", 1), ack("o", 2)])[0]


def test_order_volume_is_judged_of_a_replace_too() -> None:
    volume = limits(max_order_quantity=10)
    bigger = [
        ReplaceRequest(at_ns=at(3), order_id="o", quantity=11),
        OrderReplaced(at_ns=at(4), order_id="o", quantity=11),
    ]
    assert is_clear("order-volume", [volume, new("o", 1), ack("o", 2)])
    assert len(found("order-volume", [volume, new("o", 1), ack("o", 2), *bigger])) == 1


def test_permission_and_restriction() -> None:
    assert is_clear("permission", [limits(permitted=("ACME",)), new("o", 1), ack("o", 2)])
    assert found("permission", [limits(permitted=("OTHER",)), new("o", 1), ack("o", 2)])
    assert found("permission", [limits(permitted=("*",), restricted=("ACME",)), new("o", 1), ack("o", 2)])
    assert is_clear(
        "permission", [limits(scope="trader:t2", permitted=("OTHER",)), limits(permitted=("*",)), new("o", 1)]
    )


def test_an_override_lets_one_order_pass_until_it_expires() -> None:
    volume = limits(max_order_quantity=5)

    def override(until_s: float) -> LimitOverride:
        return LimitOverride(
            at_ns=at(0), order_id="o", limit="max_order_quantity", asked_by="Ann", authorised_by="Bob",
            expires_at_ns=at(until_s), why="client order",
        )  # fmt: skip

    assert is_clear("order-volume", [volume, override(10), new("o", 1), ack("o", 2)])
    assert found("order-volume", [volume, override(0.5), new("o", 1), ack("o", 2)])


def test_message_rate() -> None:
    rate = limits(max_messages_per_s=3)
    assert is_clear("message-rate", [rate, *many(3, 0.1), *many(3, 0.1, start_s=2.0)])
    (what,) = found("message-rate", [rate, *many(5, 0.1)])
    assert what == "5 messages within a second, above the limit of 3 for firm"


def test_messages_that_the_gate_refused_were_not_sent() -> None:
    items = [limits(max_messages_per_s=3)]
    for k in range(6):
        items += [new(f"o{k}", 0.1 * k), *([refused(f"o{k}", 0.1 * k)] if k >= 3 else [])]
    assert is_clear("message-rate", items)


def test_exposure() -> None:
    credit = limits(max_open_value=Decimal(2_500), max_position_value=Decimal(100_000))
    assert is_clear("exposure", [credit, new("o", 1), *cancel("o", 2), new("p", 3), new("q", 4)])
    assert len(found("exposure", [credit, new("o", 1), new("p", 2), new("q", 3)])) == 1
    position = limits(max_position_value=Decimal(1_500))
    assert "max_position_value" in found("exposure", [position, new("o", 1), fill("o", 2), new("p", 3)])[0]


def test_repeated_executions_need_a_person() -> None:
    throttle = limits(max_repeated_executions=2)
    executions = [event for k in range(3) for event in (new(f"o{k}", 0.1 * k), fill(f"o{k}", 0.1 * k))]
    enabled = TradingEnabled(at_ns=at(1), scope="algo:a1", by="Ann Lee", why="checked")
    assert is_clear("repeated-execution", [throttle, *executions, enabled, new("p", 2)])
    assert "without a named person" in found("repeated-execution", [throttle, *executions, new("p", 2)])[0]


def test_duplicate_orders() -> None:
    assert is_clear("duplicate-orders", many(5, 2.0))
    assert is_clear("duplicate-orders", [new(f"o{k}", 0.1 * k, price=f"{100 + k}.00") for k in range(5)])
    assert "3 identical orders" in found("duplicate-orders", many(3, 0.1))[0]


# Controls


def disabled(seconds: float, scope: str = "firm") -> TradingDisabled:
    return TradingDisabled(at_ns=at(seconds), scope=scope, cause="a stop")


def test_a_stop_cancels_what_is_open() -> None:
    opened = [new("o", 0), ack("o", 0.1)]
    assert is_clear("kill", [*opened, disabled(1), *cancel("o", 1.5), market(5)])
    assert len(found("kill", [*opened, disabled(1), market(5)])) == 1
    assert is_clear("kill", [*opened, disabled(1, "client:other"), market(5)])


def test_a_mass_cancel_reaches_its_scope_alone() -> None:
    opened = [new("o", 0), new("p", 0, client="c2")]
    request = MassCancelRequest(at_ns=at(1), by="Ann", client="c2")
    (finding,) = judge("kill", [*opened, request, market(5)]).findings
    assert finding.where.orders == ("p",)


def test_no_order_where_trading_is_disabled() -> None:
    enabled = TradingEnabled(at_ns=at(2), scope="desk:d1", by="Ann", why="checked")
    assert is_clear(
        "disabled",
        [disabled(1, "desk:d1"), new("o", 1.5), refused("o", 1.6), enabled, new("p", 3), ack("p", 4)],
    )
    assert len(found("disabled", [disabled(1, "desk:d1"), new("o", 1.5), ack("o", 1.6)])) == 1
    nameless = TradingEnabled(at_ns=at(2), scope="firm", by=" ")
    assert found("disabled", [disabled(1), nameless]) == [
        "trading of firm was enabled again without naming the person"
    ]


def test_overrides_need_two_people_a_reason_and_an_end() -> None:
    def override(by: str, why: str, hours: float) -> LimitOverride:
        return LimitOverride(
            at_ns=at(0), order_id="o", limit="max_order_value", asked_by="Ann", authorised_by=by, why=why,
            expires_at_ns=at(3_600 * hours),
        )  # fmt: skip

    assert is_clear("override", [override("Bob", "client order", 1)])
    (what,) = found("override", [override("Ann", "", 48)])
    assert "authorised it" in what
    assert "no reason" in what
    assert "expire" in what


def test_alerts_come_within_five_seconds() -> None:
    def alert(seconds: float, of_s: float) -> AlertRaised:
        return AlertRaised(at_ns=at(seconds), event_at_ns=at(of_s), what="stop")

    assert is_clear("alerts", [disabled(1), alert(4, 1), market(20)])
    assert "later than 5 s" in found("alerts", [alert(7, 1)])[0]
    assert "no alert was raised" in found("alerts", [disabled(1), alert(11, 10), market(20)])[0]
    assert judge("alerts", [disabled(1), market(20)]).outcome is CheckOutcome.NOT_JUDGED


# The order record


def test_attribution() -> None:
    assert is_clear("attribution", [new("o", 0)])
    (what,) = found("attribution", [new("o", 0, trader="", desk=""), new("p", 1, trader="", desk="")])
    assert what == "2 orders name no trader and no desk"


def test_a_possible_life_of_an_order() -> None:
    assert is_clear("lifecycle", [new("o", 0), ack("o", 1), fill("o", 2, 4), *cancel("o", 3)])
    assert found("lifecycle", [new("o", 0), *cancel("o", 1), fill("o", 2)]) == ["filled when it was canceled"]
    result = judge("lifecycle", [fill("unknown", 0)])
    assert (result.outcome, result.unjudged[0].num) == (CheckOutcome.NOT_JUDGED, 1)


def test_reconciliation() -> None:
    def reconciled(seconds: float, num: int = 0) -> Reconciled:
        return Reconciled(
            at_ns=at(seconds), with_whom="broker", num_orders=1, num_fills=1, num_differences=num
        )

    day = 86_400.0
    traded = [new("o", 0), fill("o", 1)]
    assert is_clear("reconciliation", [*traded, reconciled(day)])
    assert found("reconciliation", [*traded, reconciled(60, 2)]) == [
        "2 differences from the record of broker"
    ]
    late = [reconciled(-5 * day), *traded, market(3 * day)]
    assert "was not reconciled" in found("reconciliation", late)[0]
    assert judge("reconciliation", traded).outcome is CheckOutcome.NOT_JUDGED


# China's thresholds


def test_five_orders_within_a_second_on_five_occasions_mark_programme_trading() -> None:
    four = [order for k in range(4) for order in many(5, 0.2, start_s=60.0 * k)]
    assert is_clear("programme-trading", four)
    fifth = many(5, 0.2, start_s=300.0)
    (finding,) = judge("programme-trading", [*four, *fifth]).findings
    assert (finding.severity, finding.evidence["occasions"]) == (Severity.NOTICE, 5)
    slow = [order for k in range(9) for order in many(5, 0.26, start_s=60.0 * k)]
    assert is_clear("programme-trading", slow)


def test_occasions_of_two_days_are_not_added() -> None:
    day = 86_400.0
    two_days = [order for k in range(3) for order in many(5, 0.1, start_s=60.0 * k)]
    two_days += [order for k in range(3) for order in many(5, 0.1, start_s=day + 60.0 * k)]
    assert is_clear("programme-trading", two_days)


def test_high_frequency_by_the_second_and_by_the_day() -> None:
    assert is_clear("high-frequency", many(299, 0.003))
    assert "in one second" in found("high-frequency", many(300, 0.003))[0]
    assert is_clear("high-frequency", many(9_999, 0.5))
    cancels = [CancelRequest(at_ns=at(5_000 + 0.1 * k), order_id=f"o0.0-{k}") for k in range(10_000)]
    assert "20,000 orders and cancels" in found("high-frequency", [*many(10_000, 0.5), *cancels])[0]


def test_patterns_that_exchanges_watch() -> None:
    assert found("order-burst", many(50, 0.01))
    assert is_clear("order-burst", many(50, 0.05))
    rapid = [event for k in range(60) for event in (new(f"o{k}", 2.0 * k), *cancel(f"o{k}", 2.0 * k + 0.5))]
    patient = [event for k in range(60) for event in (new(f"o{k}", 4.0 * k), *cancel(f"o{k}", 4.0 * k + 3.0))]
    assert found("rapid-cancels", rapid)
    assert is_clear("rapid-cancels", patient)


def lifted(step: float):
    items = []
    for k in range(3):
        for n in range(6):
            name, second = f"o{k}-{n}", 200.0 * k + 5.0 * n
            items += [new(name, second, price=None), fill(name, second, 1, f"{100 + step * n:.2f}")]
    return items


def test_lifting_and_large_volume() -> None:
    assert found("price-lifting", lifted(0.3))
    assert is_clear("price-lifting", lifted(0.01))
    prints = [market(2.0 * k, quantity=5) for k in range(25)]
    assert found("large-volume", [*prints, new("o", 50, quantity=200), fill("o", 50, 200)])
    assert is_clear("large-volume", [*prints, new("o", 50), fill("o", 50, 10)])
    assert judge("large-volume", [new("o", 50), fill("o", 50, 10)]).unjudged


def test_orders_without_account_or_client_cannot_be_counted() -> None:
    result = judge("programme-trading", [new("o", 0, client="")])
    assert result.outcome is CheckOutcome.NOT_JUDGED


# The span, the regimes, bounded memory


def test_what_came_before_the_span_is_read_and_not_reported() -> None:
    items = [limits(max_order_quantity=5), new("o", 1), ack("o", 2), new("p", 100), ack("p", 101)]
    (finding,) = judge("order-volume", items, span=Span(at(50))).findings
    assert finding.where.orders == ("p",)
    assert found("order-volume", items, span=Span(0, at(1))) == []


def test_a_regime_has_its_own_checks() -> None:
    results, _ = run_checks([new("o", 0)], CHECKS, [RuleRegime.CN])
    ids = {one.id for one in results}
    assert "programme-trading" in ids
    assert "layering" in ids
    assert "price-collar" not in ids


def test_findings_beyond_the_kept_ones_are_counted() -> None:
    items = [limits(max_order_quantity=5), *many(MAX_KEPT_FINDINGS + 20, 1.0)]
    result = judge("order-volume", items)
    assert (len(result.findings), result.num_found) == (MAX_KEPT_FINDINGS, MAX_KEPT_FINDINGS + 20)


def test_layering_spoofing_and_an_honest_maker() -> None:
    def episode(start_s: float, shown: int, levels: int):
        items = [new(f"g{start_s}", start_s, BUY, 5), ack(f"g{start_s}", start_s)]
        items += [
            new(f"f{start_s}-{n}", start_s + 0.1, SELL, shown, f"{100.02 + 0.01 * n:.2f}")
            for n in range(levels)
        ]
        items.append(fill(f"g{start_s}", start_s + 2.0, 5))
        for n in range(levels):
            items += cancel(f"f{start_s}-{n}", start_s + 3.0 + 0.1 * n)
        return items

    layers = [event for k in range(4) for event in episode(100.0 * k, 10, 4)]
    large = [event for k in range(4) for event in episode(100.0 * k, 40, 1)]
    maker = [event for k in range(4) for event in episode(100.0 * k, 5, 1)]
    assert "layering" in found("layering", layers)[0]
    assert is_clear("spoofing", layers)
    assert "spoofing" in found("spoofing", large)[0]
    assert is_clear("layering", large)
    assert is_clear("spoofing", maker)
    assert is_clear("layering", episode(0.0, 10, 4))  # once is no pattern


def test_wash_trades_by_match_id_and_by_time_and_price() -> None:
    def pair(k: int, match: str, other: str = "c1"):
        return [
            new(f"b{k}", k, BUY), new(f"s{k}", k, SELL, client=other),
            fill(f"b{k}", k + 0.1, match_id=match), fill(f"s{k}", k + 0.1, match_id=match),
        ]  # fmt: skip

    assert "by match id" in found("wash-trades", [*pair(0, "m0"), *pair(10, "m1")])[0]
    assert is_clear("wash-trades", [*pair(0, "m0", "c2"), *pair(10, "m1", "c2")])
    inferred = [event for k in range(5) for event in pair(10 * k, "")]
    result = judge("wash-trades", inferred)
    assert "by time and price" in result.findings[0].what
    assert result.unjudged[0].reason.startswith("fills without match ids")


def test_two_parties_that_trade_to_and_fro() -> None:
    items = []
    for k in range(8):
        sides = (BUY, SELL) if k % 2 else (SELL, BUY)
        items += [new(f"x{k}", k, sides[0], client="c1"), new(f"y{k}", k, sides[1], client="c2")]
        items += [fill(f"x{k}", k + 0.1, match_id=f"m{k}"), fill(f"y{k}", k + 0.1, match_id=f"m{k}")]
    assert "to and fro" in found("wash-trades", items)[0]
