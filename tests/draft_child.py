"""The draft's process for tests: `python draft_child.py HOW CHANNEL BOARD`, a tiny draft that behaves as HOW says.

works; late (a pass takes 50 ms); nonsense (writes tokens that no form admits); refuses (tells why and ends);
dumb (never says that it is ready).
"""

import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from htfi.adapters.drafting.channel import FAILED, READY, SharedOutcomes
from htfi.adapters.drafting.worker import DraftWorker
from htfi.decoding.strategies.outcomes.tree import pack_word
from htfi.decoding.vocabulary import Vocabulary
from outcome_pair import TOKENIZER, drafter


class NonsenseBoard(SharedOutcomes):
    def write(self, slot, epoch, first, words):
        super().write(slot, epoch, 0, [pack_word(epoch, True, at, 0) for at in range(30)])


def main() -> None:
    how, channel_number, board_number = sys.argv[1:]
    channel = socket.socket(fileno=int(channel_number))
    if how == "refuses":
        channel.sendall(FAILED + b"failed: no such draft")
        return
    if how == "dumb":
        channel.recv(1)
        return
    board = (NonsenseBoard if how == "nonsense" else SharedOutcomes)(int(board_number))
    draft = drafter()
    if how == "late":
        quick = draft.sessions.network.forward

        def slow(*arrays):
            time.sleep(0.05)
            return quick(*arrays)

        draft.sessions.network.forward = slow
    channel.sendall(READY)
    DraftWorker(channel, board, draft, Vocabulary(TOKENIZER)).run()


if __name__ == "__main__":
    main()
