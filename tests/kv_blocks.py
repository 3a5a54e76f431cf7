"""How full a prefix cache is."""

from htfi.decoding.kv_cache import PrefixCache


def num_free(cache: PrefixCache) -> int:
    return len(cache._free)


def num_cached(cache: PrefixCache) -> int:
    return len(cache._places)
