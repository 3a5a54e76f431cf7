"""The list of all checks, in the order of reports."""

from htfi.governance.regulation.check import CheckDefinition
from htfi.governance.regulation.checks.controls import CONTROL_CHECKS
from htfi.governance.regulation.checks.decisions import DECISION_CHECKS
from htfi.governance.regulation.checks.incidents import INCIDENT_CHECKS
from htfi.governance.regulation.checks.limits import LIMIT_CHECKS
from htfi.governance.regulation.checks.order_records import RECORD_CHECKS
from htfi.governance.regulation.checks.programme_trading import PROGRAMME_TRADING_CHECKS
from htfi.governance.regulation.checks.surveillance import SURVEILLANCE_CHECKS

CHECKS: tuple[CheckDefinition, ...] = (
    *LIMIT_CHECKS,
    *CONTROL_CHECKS,
    *RECORD_CHECKS,
    *SURVEILLANCE_CHECKS,
    *PROGRAMME_TRADING_CHECKS,
    *DECISION_CHECKS,
    *INCIDENT_CHECKS,
)
