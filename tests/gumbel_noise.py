"""Shared noise as a table, for comparison with choices that compute only what they need."""

from htfi.decoding.noise import Doubles, Ids, Keys, gumbel_from_hashes, noise_hashes, token_counters


def gumbel(row_keys: Keys, token_ids: Ids) -> Doubles:
    """Standard Gumbel noise [N, C] for keys [N] and token ids [C], the same bits on every machine."""
    return gumbel_from_hashes(noise_hashes(row_keys, token_counters(token_ids)))
