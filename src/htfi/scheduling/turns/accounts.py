"""What each tenant has used of an engine, so that the next turn goes to who has used least. `FairTurns` holds one.

A virtual counter for each tenant, in ms of the engine's time (Sheng et al., "Fairness in serving large language
models", arXiv 2401.00588): a tenant that was idle begins where the least of the active stand, so that nobody saves up
rights while away, and nobody is owed for what others used before.
"""

from collections.abc import Iterable, Mapping, Set

Accounts = Mapping[str, float]


def charged(accounts: Accounts, costs: Iterable[tuple[str, float]]) -> Accounts:
    """Accounts after tenants used so many ms."""
    after = dict(accounts)
    for tenant, ms in costs:
        after[tenant] = after.get(tenant, 0.0) + ms
    return after


def lifted(accounts: Accounts, active: Set[str]) -> Accounts:
    """Accounts of those that are active; who is idle is remembered only for what it used beyond the others."""
    standing = [accounts[tenant] for tenant in active if tenant in accounts]
    if not standing:
        return dict.fromkeys(active, 0.0)
    least = min(standing)
    after = {tenant: ms for tenant, ms in accounts.items() if tenant in active or ms > least}
    for tenant in active:
        after.setdefault(tenant, least)
    return after
