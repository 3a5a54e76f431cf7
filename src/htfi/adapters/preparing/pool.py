"""Work that several child processes share with the process that asked for it, each part done by the first that is free.

The children only save time: a part whose child fails waits again, for another child or for who asked.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from htfi.adapters.preparing.process import PreparingProcess

_ANSWER_S = 20.0  # for one part, before its child is given up
_PARTS_SENT = 2  # to a child: one that it works on, one that is there when it has done so


class SharedPart:
    """One part of the work; `answer` is what a child made of it, None before and where no child did it."""

    def __init__(self) -> None:
        self.answer: bytes | None = None
        self.child: PreparingProcess | None = None  # that has it
        self.is_wanted = True


AnyPart = TypeVar("AnyPart", bound=SharedPart)


class _Child(Generic[AnyPart]):
    def __init__(self, number: int) -> None:
        self.number = number
        self.process: PreparingProcess | None = None
        self.sent: deque[AnyPart] = deque()  # not answered, in order
        self.is_ready = False


class PreparingPool(Generic[AnyPart]):
    """Gives parts to child processes in order, as each becomes free.

    `encode` makes a part's request for the child of a number, in the order in which that child receives them. `notify`
    receives one line for each child that fails. Parts are put, claimed and waited for by one thread.
    """

    def __init__(
        self,
        command: Sequence[str],
        start: bytes,
        num: int,
        encode: Callable[[AnyPart, int], bytes],
        notify: Callable[[str], None],
    ) -> None:
        """`num` children of this command; `start` is the first frame of each. Raises: nothing."""
        self._encode, self._notify = encode, notify
        self._changed = threading.Condition()
        self._waiting: deque[AnyPart] = deque()
        self._children: list[_Child[AnyPart]] = []
        for number in range(num):
            child = _Child[AnyPart](number)
            child.process = PreparingProcess(
                command,
                start,
                lambda frame, child=child: self._receive(child, frame),
                lambda why, child=child: self._drop_child(child, why),
            )
            self._children.append(child)
        for child in list(self._children):
            assert child.process is not None
            child.process.start()

    @property
    def is_ready(self) -> bool:
        """Whether every child that lives has opened what it needs."""
        return all(child.is_ready for child in list(self._children))

    @property
    def has_failed(self) -> bool:
        """Whether no child is left."""
        return not self._children

    def put(self, part: AnyPart) -> None:
        """Have a part done, after those that were put before."""
        with self._changed:
            self._waiting.append(part)
            self._deal()

    def clear(self) -> None:
        """Forget the parts that no child has; what children answer to the others is of no use any more."""
        with self._changed:
            self._waiting.clear()
            for child in self._children:
                for part in child.sent:
                    part.is_wanted = False

    def claim(self, part: AnyPart) -> bool:
        """Take a part that no child has, to do it oneself."""
        with self._changed:
            if part.child is not None or part not in self._waiting:
                return False
            self._waiting.remove(part)
            return True

    def claim_next(self) -> AnyPart | None:
        """Take the first part that no child has; None where there is none."""
        with self._changed:
            return self._waiting.popleft() if self._waiting else None

    def wait(self, part: AnyPart) -> None:
        """Until a part that a child has is answered, or waits again. A child that takes too long is given up."""
        with self._changed:
            child = part.child
            arrived = self._changed.wait_for(lambda: part.answer is not None or part.child is None, _ANSWER_S)
        if not arrived and child is not None:
            child.give_up(f"did not answer within {_ANSWER_S:.0f} s")

    def close(self) -> None:
        """End the children; what they have waits again."""
        with self._changed:
            children = list(self._children)
            for child in reversed(children):
                self._take_back(child)
        for child in children:
            if child.process is not None:
                child.process.close()

    def _deal(self) -> None:
        """Send children what waits; the lock is held."""
        for child in self._children:
            while self._waiting and child.is_ready and len(child.sent) < _PARTS_SENT:
                part = self._waiting.popleft()
                assert child.process is not None
                part.child = child.process
                child.sent.append(part)
                child.process.send(self._encode(part, child.number))

    def _receive(self, child: _Child[AnyPart], frame: bytes) -> None:
        with self._changed:
            if child.is_ready and child.sent:
                child.sent.popleft().answer = frame
            child.is_ready = True
            self._deal()
            self._changed.notify_all()

    def _drop_child(self, child: _Child[AnyPart], why: str) -> None:
        with self._changed:
            if child in self._children:
                self._take_back(child)
        self._notify(f"a process that reads news ahead {why}; the run reads its news without it")

    def _take_back(self, child: _Child[AnyPart]) -> None:
        """Have what a child has not answered done by others; the lock is held."""
        self._children.remove(child)
        for part in child.sent:
            part.child = None
        self._waiting.extendleft(part for part in reversed(child.sent) if part.is_wanted)
        child.sent.clear()
        self._deal()
        self._changed.notify_all()
