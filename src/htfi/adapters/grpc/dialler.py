"""Keeps one stream open to each configured node, for ever; the transport starts it in its loop."""

import asyncio
from collections.abc import Callable

import numpy as np

from htfi.adapters.grpc import library
from htfi.adapters.grpc.config import Bounds, channel_options
from htfi.adapters.grpc.diagnosis import why_not
from htfi.adapters.grpc.library import Call
from htfi.adapters.grpc.server import NODE_KEY
from htfi.adapters.grpc.switch import Switch
from htfi.adapters.grpc.tls import Credentials, Identity

Trouble = Callable[[str, str], None]
_STEADY_S = 1.0  # up for so long, a stream's end is news, not one more failure


async def keep_dialled(
    switch: Switch,
    own_name: str,
    node: str,
    address: str,
    credentials: Credentials | None,
    dice: np.random.Generator,
    trouble: Trouble,
) -> None:
    """Returns when the switch is closing. `trouble` gets each change of why there is no stream, '' when there is."""
    loop = asyncio.get_running_loop()
    told, num_failures = "", 0
    while not switch.is_closing:
        identity = None if credentials is None else credentials.current()
        channel = library.make_channel(
            address,
            None
            if identity is None
            else library.channel_credentials(identity.authority, identity.key, identity.chain),
            channel_options(switch.bounds, node),
        )
        try:
            metadata = ((NODE_KEY, own_name),) if identity is None else ()
            call = library.make_call(channel, metadata)
            words = await _connect(call, node, address, identity, switch.bounds)
            if not words:
                if told:
                    trouble(node, "")
                    told = ""
                since_s = loop.time()
                stream = switch.open(node, dialled=True)
                await switch.run(stream, call, call.done_writing)
                num_failures = 0 if loop.time() - since_s >= _STEADY_S else num_failures
            elif words != told:
                trouble(node, words)
                told = words
            call.cancel()
        finally:
            await channel.close()
        await asyncio.sleep(redial_s(num_failures, switch.bounds, dice))
        num_failures += 1


def redial_s(num_failures: int, bounds: Bounds, dice: np.random.Generator) -> float:
    """Doubling to a bound, each drawn from its upper half, so that many nodes do not come back at once."""
    longest_s = min(bounds.longest_redial_s, bounds.first_redial_s * 2 ** min(num_failures, 16))
    return longest_s * (0.5 + 0.5 * float(dice.random()))


async def _connect(call: Call, node: str, address: str, identity: Identity | None, bounds: Bounds) -> str:
    """'' once the stream is open, else why it is not."""
    try:
        async with asyncio.timeout(bounds.dial_s):
            stated = dict(await call.initial_metadata())
            if NODE_KEY not in stated:
                status, details = str((await call.code()).name), await call.details()
                if status != "UNAVAILABLE":
                    return f"{address} refuses: {details or status}"
                return await why_not(node, address, identity, details)
    except TimeoutError:
        return f"no answer from {address} within {bounds.dial_s:g} s"
    if stated[NODE_KEY] != node:
        return f"{address} is {stated[NODE_KEY]}, not {node}"
    return ""
