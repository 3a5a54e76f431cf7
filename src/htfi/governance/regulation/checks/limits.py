"""The catalogue's lines of pre-trade limits: every order within the limits in force when it was sent, or refused."""

from htfi.governance.regulation.check import CheckDefinition
from htfi.governance.regulation.checks.order_limits import (
    limit_check,
    measured_collar,
    measured_permission,
    measured_quantity,
    measured_value,
)
from htfi.governance.regulation.checks.repeated_orders import DuplicateOrderCheck, RepeatedExecutionCheck
from htfi.governance.regulation.checks.scope_limits import ExposureCheck, MessageRateCheck
from htfi.governance.regulation.findings import RuleRegime

LIMIT_CHECKS = (
    CheckDefinition(
        "price-collar",
        "Orders within the price collar",
        {RuleRegime.EU: "RTS 6 art. 15(1)(a)", RuleRegime.US: "SEC 15c3-5(c)(1)(ii)"},
        "new and replace, limits, market",
        "without limits; market orders; before the instrument's first market data",
        limit_check("price_collar", measured_collar),
    ),
    CheckDefinition(
        "order-value",
        "Orders within the maximum value",
        {RuleRegime.EU: "RTS 6 art. 15(1)(b)", RuleRegime.US: "SEC 15c3-5(c)(1)(ii)"},
        "new and replace, limits, instrument, market",
        "without limits; market orders without market data",
        limit_check("max_order_value", measured_value),
    ),
    CheckDefinition(
        "order-volume",
        "Orders within the maximum volume",
        {RuleRegime.EU: "RTS 6 art. 15(1)(c)", RuleRegime.US: "SEC 15c3-5(c)(1)(ii)"},
        "new and replace, limits",
        "without limits",
        limit_check("max_order_quantity", measured_quantity),
    ),
    CheckDefinition(
        "permission",
        "Only instruments that are permitted and not restricted",
        {RuleRegime.EU: "RTS 6 art. 15(5)", RuleRegime.US: "SEC 15c3-5(c)(2)(ii)"},
        "new and replace, limits",
        "without limits that name instruments",
        limit_check("permission", measured_permission, is_required=False),
    ),
    CheckDefinition(
        "message-rate",
        "Messages within the limit a second",
        {RuleRegime.EU: "RTS 6 art. 15(1)(d)"},
        "new, replace, cancel, limits",
        "without a limit on messages",
        MessageRateCheck,
    ),
    CheckDefinition(
        "exposure",
        "Credit and market risk within the limits",
        {RuleRegime.EU: "RTS 6 art. 15(4), 17(2)", RuleRegime.US: "SEC 15c3-5(c)(1)(i)"},
        "new, fill and what ends an order, limits, instrument, market",
        "without limits on value; market orders without market data; positions from before the span",
        ExposureCheck,
    ),
    CheckDefinition(
        "repeated-execution",
        "Repeated executions disable until a person enables",
        {RuleRegime.EU: "RTS 6 art. 15(3)"},
        "fill, new, limits, enabled",
        "without a limit on repeated executions; orders that name no algorithm",
        RepeatedExecutionCheck,
    ),
    CheckDefinition(
        "duplicate-orders",
        "No order sent several times by mistake",
        {RuleRegime.US: "SEC 15c3-5(c)(1)(ii)", RuleRegime.EU: "RTS 6 art. 15(1)"},
        "new",
        "without orders",
        DuplicateOrderCheck,
    ),
)
