"""API keys: 256 random bits, shown once. What is kept is their SHA-256: there are too many to try out.

A key reads `htfi_<id>_<secret>`. The id is public: it finds the stored key, and is what lists and usage name.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable

import msgspec

from htfi.tenancy.quotas import Quota
from htfi.tenancy.scopes import ApiScope

_ID_BYTES, _SECRET_BYTES = 10, 32
_KEY = re.compile(r"htfi_([a-z2-7]{16})_[A-Za-z0-9_-]{43}")
_NO_QUOTA = Quota()


class StoredKey(msgspec.Struct, frozen=True):
    """What is known of a key. Times are UTC; `person` is whom it stands for in a directory of people."""

    id: str
    tenant: str
    name: str
    digest: bytes  # SHA-256 of the whole key
    scopes: frozenset[ApiScope]
    created_ns: int
    expires_ns: int | None = None
    revoked_ns: int | None = None
    used_ns: int | None = None
    person: str = ""
    quota: Quota = _NO_QUOTA

    def is_valid(self, now_ns: int) -> bool:
        return self.revoked_ns is None and (self.expires_ns is None or now_ns < self.expires_ns)


class KeyText(msgspec.Struct, frozen=True):
    """A key as its owner has it: the id in it, and what is compared."""

    id: str
    digest: bytes


def make_key(random: Callable[[int], bytes]) -> str:
    """A new key of random bytes."""
    name = base64.b32encode(random(_ID_BYTES)).decode().lower()
    secret = base64.urlsafe_b64encode(random(_SECRET_BYTES)).decode().rstrip("=")
    return f"htfi_{name}_{secret}"


def parse_key(text: str) -> KeyText | None:
    """None where it is not of a key's form."""
    found = _KEY.fullmatch(text)
    return None if found is None else KeyText(found[1], hashlib.sha256(text.encode()).digest())


def is_same_key(given: KeyText, stored: StoredKey | None) -> bool:
    """Whether a key is the stored one, in the same time whether it is or not, and whether there is one."""
    digest = bytes(hashlib.sha256().digest_size) if stored is None else stored.digest
    return hmac.compare_digest(given.digest, digest) and stored is not None
