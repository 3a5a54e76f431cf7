"""Parts of prompts and forms, held by name: both sides name them, the cloud's desk keeps them.

A part is known by the BLAKE2b-128 of its bytes, so that what an edge has sent once is never sent again, an interrupted
part goes on where it stopped, and nobody can put one part in the place of another.
"""

import hashlib
from collections.abc import Sequence

from htfi.decoding.link.frames import NAME_BYTES
from htfi.decoding.sampling import Sampling

MAX_PART_BYTES = 1 << 21
_SEED_MASK = 2**64 - 1


def part_name(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=NAME_BYTES).digest()


def request_name(prompt: Sequence[bytes], form: bytes, seed: int, sampling: Sampling) -> bytes:
    """The name of a question that is put in parts of these names: the same question has the same answer everywhere.

    Seeds are equal modulo 2^64.
    """
    temperature, top_k, top_p = sampling
    told = f"{seed & _SEED_MASK} {float(temperature)!r} {top_k} {float(top_p)!r} {len(prompt)} ".encode()
    return part_name(told + b"".join(prompt) + form)
