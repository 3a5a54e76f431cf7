"""What remote calls may cost and have cost. The author reserves the worst case before a call and settles after it."""

import threading
from dataclasses import dataclass
from typing import NamedTuple

from htfi.adapters.openai.config import FrontierConfig


@dataclass(frozen=True, slots=True)
class RemoteUsage:
    """Used so far: tokens as the server counted them, or at most, where it did not say."""

    num_input_tokens: int = 0
    num_output_tokens: int = 0
    money: float = 0.0
    num_calls: int = 0


class CallReservation(NamedTuple):
    """The most that one call can use."""

    num_input_tokens: int
    num_output_tokens: int


class CallBudget:
    """A ledger of calls under way and done. Calls side by side can never exceed it together."""

    def __init__(self, config: FrontierConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._usage = RemoteUsage()
        self._reserved: list[CallReservation] = []

    @property
    def usage(self) -> RemoteUsage:
        return self._usage

    def reserve(self, call: CallReservation) -> str:
        """Set aside the worst case of a call; a reason where that could exceed the budget, else ''."""
        with self._lock:
            under_way = [*self._reserved, call]
            spent = self._usage
            num_input = spent.num_input_tokens + sum(each.num_input_tokens for each in under_way)
            num_output = spent.num_output_tokens + sum(each.num_output_tokens for each in under_way)
            if num_input + num_output > self._config.budget_tokens:
                left = self._config.budget_tokens - spent.num_input_tokens - spent.num_output_tokens
                return f"budget: {max(left, 0)} of {self._config.budget_tokens} tokens are left"
            if self._money(num_input, num_output) > self._config.budget_money:
                left = self._config.budget_money - spent.money
                return f"budget: {max(left, 0.0):.4f} of {self._config.budget_money:g} in money is left"
            self._reserved.append(call)
            return ""

    def charge(self, call: CallReservation, num_input_tokens: int, num_output_tokens: int) -> None:
        """Give back what was set aside and count what was used."""
        with self._lock:
            self._reserved.remove(call)
            spent = self._usage
            num_input = spent.num_input_tokens + num_input_tokens
            num_output = spent.num_output_tokens + num_output_tokens
            self._usage = RemoteUsage(
                num_input, num_output, self._money(num_input, num_output), spent.num_calls + 1
            )

    def _money(self, num_input: int, num_output: int) -> float:
        config = self._config
        return (
            num_input * config.input_price_per_million + num_output * config.output_price_per_million
        ) / 1_000_000
