"""What a cloud did for whom: answers, tokens, times and refusals by tenant. The desk keeps one, apps show it."""

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field

from htfi.decoding.link.frames import Why

_MOST = 1024  # tenants that are remembered
_RECENT = 256  # answers of each whose times are kept


@dataclass(slots=True)
class Account:
    """Totals since the start; `recent_ms` from a request's opening to its whole answer."""

    num_answers: int = 0
    num_tokens: int = 0
    num_refused: int = 0
    recent_ms: deque[float] = field(default_factory=lambda: deque[float](maxlen=_RECENT))

    @property
    def p95_ms(self) -> float | None:
        if not self.recent_ms:
            return None
        ranked = sorted(self.recent_ms)
        return ranked[min(len(ranked) * 95 // 100, len(ranked) - 1)]


class Tally:
    """Accounts by tenant, those not served for longest forgotten first; refusals by reason."""

    def __init__(self) -> None:
        self.accounts: OrderedDict[str, Account] = OrderedDict()
        self.refused: Counter[str] = Counter()

    def answered(self, tenant: str, num_tokens: int, took_ms: float) -> None:
        account = self._of(tenant)
        account.num_answers += 1
        account.num_tokens += num_tokens
        account.recent_ms.append(took_ms)

    def refuses(self, tenant: str, why: Why) -> None:
        self._of(tenant).num_refused += 1
        self.refused[why.name.lower()] += 1

    def _of(self, tenant: str) -> Account:
        account = self.accounts.get(tenant)
        if account is None:
            account = self.accounts[tenant] = Account()
            if len(self.accounts) > _MOST:
                self.accounts.popitem(last=False)
        self.accounts.move_to_end(tenant)
        return account
