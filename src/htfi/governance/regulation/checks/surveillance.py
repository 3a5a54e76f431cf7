"""The catalogue's lines of market abuse: six patterns, with the rules of each regime that name them."""

from functools import partial

from htfi.governance.regulation.check import CheckDefinition
from htfi.governance.regulation.checks.order_pressure import LayeringCheck, SpoofingCheck, WashTradeCheck
from htfi.governance.regulation.checks.price_pressure import (
    MarkingTheCloseCheck,
    MomentumIgnitionCheck,
    RampingCheck,
)
from htfi.governance.regulation.findings import RuleRegime
from htfi.governance.regulation.thresholds import SurveillanceThresholds

_MARKET = "without market data, or fills that do not say whether they took liquidity"


def surveillance_checks(thresholds: SurveillanceThresholds | None = None) -> tuple[CheckDefinition, ...]:
    """The six patterns, at these thresholds."""
    limits = thresholds or SurveillanceThresholds()
    return (
        CheckDefinition(
            "layering", "Layering",
            {
                RuleRegime.EU: "MAR art. 12(2)(c); RTS 6 art. 13",
                RuleRegime.US: "Exchange Act 9(a)(2); FINRA 5210", RuleRegime.CN: "Securities Law art. 55(4)",
            },
            "all order messages", "without fills", partial(LayeringCheck, thresholds=limits.pressure),
        ),
        CheckDefinition(
            "spoofing", "Spoofing",
            {
                RuleRegime.EU: "MAR art. 12(2)(c); RTS 6 art. 13",
                RuleRegime.US: "Commodity Exchange Act 4c(a)(5)(C); FINRA 5210",
                RuleRegime.CN: "Securities Law art. 55(4)",
            },
            "all order messages", "without fills", partial(SpoofingCheck, thresholds=limits.pressure),
        ),
        CheckDefinition(
            "wash-trades", "Wash trades",
            {
                RuleRegime.EU: "MAR art. 12(1)(a); RTS 6 art. 13",
                RuleRegime.US: "Exchange Act 9(a)(1); FINRA 5210", RuleRegime.CN: "Securities Law art. 55(2), 55(3)",
            },
            "fill", "fills without match ids are paired by time, price and quantity; owners behind clients",
            partial(WashTradeCheck, thresholds=limits.wash),
        ),
        CheckDefinition(
            "ramping", "Ramping",
            {
                RuleRegime.EU: "MAR art. 12(1)(a); RTS 6 art. 13",
                RuleRegime.US: "Exchange Act 9(a)(2)", RuleRegime.CN: "Securities Law art. 55(1)",
            },
            "fill, market", _MARKET, partial(RampingCheck, thresholds=limits.ramp),
        ),
        CheckDefinition(
            "marking-the-close", "Marking the close",
            {
                RuleRegime.EU: "MAR art. 12(2)(b); RTS 6 art. 13",
                RuleRegime.US: "Exchange Act 9(a)(2); Commodity Exchange Act 4c(a)(5)(B)",
                RuleRegime.CN: "Securities Law art. 55(1)",
            },
            "fill, market with phases", f"{_MARKET}; without the session's phases",
            partial(MarkingTheCloseCheck, thresholds=limits.close),
        ),
        CheckDefinition(
            "momentum-ignition", "Momentum ignition",
            {
                RuleRegime.EU: "MAR art. 12(2)(c); RTS 6 art. 13",
                RuleRegime.US: "Exchange Act 9(a)(2); FINRA 15-09 (trading systems)",
                RuleRegime.CN: "Securities Law art. 55",
            },
            "fill, market", _MARKET, partial(MomentumIgnitionCheck, thresholds=limits.ignition),
        ),
    )  # fmt: skip


SURVEILLANCE_CHECKS = surveillance_checks()
