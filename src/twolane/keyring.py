"""Keys that were configured, and the record of single-use tokens that one process keeps."""

from __future__ import annotations

import base64
import logging
import os
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from twolane.ports import KEY_MIN_BYTES, Key, KeyRing

__all__ = ["KEYS_VARIABLE", "SpentSet", "StaticRing", "configured_ring", "parse_keys"]

#: Names the keys of all workers: comma-separated secrets; the first seals, all open.
KEYS_VARIABLE = "TWOLANE_STATE_KEYS"

_HEX = re.compile(r"[0-9a-fA-F]+")

_log = logging.getLogger("twolane.seal")


class SpentSet:
    """
    The tokens that were spent in this process, until they expire. Safe among threads.

    Args:
        limit: the most tokens to remember. When so many are alive, further ones are refused: forgetting one would let
            it be used again.
    """

    def __init__(self, limit: int = 250_000) -> None:
        self._until: dict[bytes, float] = {}
        self._limit = limit
        self._sweep_at = min(1024, limit)
        self._lock = threading.Lock()

    def spend(self, token_id: bytes, until: float, now: float) -> bool:
        """Return True the first time *token_id* is given, False afterwards."""
        with self._lock:
            if token_id in self._until:
                return False
            if len(self._until) >= self._sweep_at:
                self._until = {token: end for token, end in self._until.items() if end >= now}
                # Sweeping at twice what is alive keeps the cost of a token constant.
                self._sweep_at = min(max(1024, 2 * len(self._until)), self._limit)
            if len(self._until) >= self._limit:
                _log.warning("%d single-use tokens are alive, which is the limit; one is refused", self._limit)
                return False
            self._until[token_id] = until
            return True

    def __len__(self) -> int:
        return len(self._until)


class StaticRing:
    """
    A key ring of secrets that were configured.

    Args:
        keys: the first seals, all open.
        spends: keeps the record of spent tokens, usually the backend; without it this process does.
    """

    def __init__(self, keys: Sequence[Key], spends: KeyRing | None = None) -> None:
        self._keys = tuple(keys)
        self._spends = spends
        self._spent = SpentSet()

    async def keys(self) -> Sequence[Key]:
        """Return the configured keys."""
        return self._keys

    async def spend(self, token_id: bytes, until: float) -> bool:
        """Mark a token as used, see :meth:`twolane.ports.KeyRing.spend`."""
        if self._spends is not None:
            return await self._spends.spend(token_id, until)
        return self._spent.spend(token_id, until, time.time())


def configured_ring(
    state_keys: Iterable[str | bytes] | None,
    spends: KeyRing | None = None,
    environ: Mapping[str, str] = os.environ,
) -> StaticRing | None:
    """
    Return the ring of the ``state_keys`` option, else of :data:`KEYS_VARIABLE`, else None.

    Args:
        state_keys: the option.
        spends: keeps the record of spent tokens.
        environ: the environment.

    Raises:
        TypeError: the option is no sequence of str or bytes.
        ValueError: a key is too short or given twice. The text names its place, never its value.
    """
    if state_keys is not None:
        return StaticRing(parse_keys(state_keys, "state_keys"), spends)
    text = environ.get(KEYS_VARIABLE, "").strip()
    return StaticRing(parse_keys(text.split(","), KEYS_VARIABLE), spends) if text else None


def parse_keys(secrets: Iterable[str | bytes], source: str) -> tuple[Key, ...]:
    """
    Read secrets: bytes as they are, text as hex, base64 or base64url if it is that, else as its UTF-8 bytes.

    Args:
        secrets: 32 bytes or more each.
        source: where they come from, for errors.

    Raises:
        TypeError: one is neither str nor bytes.
        ValueError: there is none, or one is too short or given twice. The text never holds a value.
    """
    if isinstance(secrets, str | bytes | bytearray):
        raise TypeError(f"{source} takes a sequence of secrets; put a single one into a list")
    keys: list[Key] = []
    for position, secret in enumerate(secrets, 1):
        material = _material(secret, f"{source}, key {position}")
        key = Key.of(material)
        if key in keys:
            raise ValueError(f"{source}, key {position} is the same as key {keys.index(key) + 1}")
        keys.append(key)
    if not keys:
        raise ValueError(f"{source} holds no key")
    return tuple(keys)


def _material(secret: Any, where: str) -> bytes:
    if isinstance(secret, str):
        text = secret.strip()
        material = _decoded(text)
        if _HEX.fullmatch(text):
            # Half of what it looks like: 32 hex digits are no 32 bytes.
            material = bytes.fromhex(text) if len(text) % 2 == 0 else b""
    elif isinstance(secret, bytes | bytearray):
        material = bytes(secret)
    else:
        raise TypeError(f"{where} is {type(secret).__name__}; a secret is str or bytes")
    if len(material) < KEY_MIN_BYTES:
        raise ValueError(
            f"{where} has {len(material)} bytes and needs {KEY_MIN_BYTES} random ones; "
            'make one with: python -c "import secrets; print(secrets.token_hex(32))"'
        )
    return material


def _decoded(text: str) -> bytes:
    body = text.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), b"-_", validate=True)
    except ValueError:
        raw = b""
    return raw if len(raw) >= KEY_MIN_BYTES else text.encode("utf-8", "surrogatepass")
