"""Of several edges on one desk only the leader publishes, and nothing falls between two leaders."""

from io import BytesIO

from htfi.wiring.cluster.edge import LeaderOutput


class Turn:
    """Who leads, and the time."""

    leads = False
    now_s = 0.0

    def __call__(self) -> bool:
        return self.leads

    def clock(self) -> float:
        return self.now_s


def test_a_follower_publishes_nothing() -> None:
    turn, out = Turn(), BytesIO()
    mirror = LeaderOutput(out, turn, 2.0, turn.clock)
    assert mirror.write(b"a\n") == 2
    assert out.getvalue() == b""


def test_who_takes_the_lead_says_what_nobody_may_have_said() -> None:
    turn, out = Turn(), BytesIO()
    mirror = LeaderOutput(out, turn, 2.0, turn.clock)
    mirror.write(b"long ago\n")
    turn.now_s = 5.0
    mirror.write(b"just now\n")
    turn.leads, turn.now_s = True, 6.0
    mirror.write(b"next\n")
    assert out.getvalue() == b"just now\nnext\n"


def test_who_loses_the_lead_falls_silent_and_a_leader_says_nothing_twice() -> None:
    turn, out = Turn(), BytesIO()
    turn.leads = True
    mirror = LeaderOutput(out, turn, 2.0, turn.clock)
    mirror.write(b"a\n")
    turn.leads = False
    mirror.write(b"b\n")
    turn.leads = True
    mirror.write(b"c\n")
    assert out.getvalue() == b"a\nb\nc\n"
