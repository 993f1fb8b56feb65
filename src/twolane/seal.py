"""
Sealed text: request state and handles on their way through the client (basic/patterns/mrtr, "Request state").

A sealed text is ``tl1.`` and the unpadded base64url of key id, salt and ciphertext. Each text has a key of its own,
derived by HKDF-SHA256 from a secret of the key ring and a random salt, and is encrypted with AES-256-GCM. What it is
bound to (audience, principal, method, name, arguments) is associated data: it is not in the text, and a text opened
under anything else fails like an altered one.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import orjson

from twolane.errors import SealError
from twolane.keyring import configured_ring, parse_keys
from twolane.ports import KEY_ID_BYTES, Key, KeyRing
from twolane.protocol.canonical import check_json, digest

__all__ = [
    "MAX_SEALED",
    "Binding",
    "Key",
    "RequestStateCodec",
    "Sealer",
    "configured_ring",
    "handle_binding",
    "state_binding",
]

#: Characters a sealed text may have. Longer ones are refused before any work is done.
MAX_SEALED = 64 * 1024

_PREFIX = "tl1."
_INFO = b"twolane sealed text 1"
_SALT = 16
_TAG = 16
_HEAD = KEY_ID_BYTES + _SALT
_LONGEST_TTL = 10 * 365 * 86_400

_log = logging.getLogger("twolane.seal")


@dataclass(frozen=True, slots=True)
class Binding:
    """
    What a sealed text is good for. It opens under an equal binding only.

    Args:
        purpose: keeps state, handles and hand-made texts apart.
        principal: who it was sealed for.
        method: the request's method.
        name: the tool, prompt or resource.
        arguments: digest of the arguments, see :func:`twolane.protocol.canonical.digest`.
        server: the name of the server that sealed it.
    """

    purpose: Literal["state", "handle", "codec"]
    principal: tuple[str, ...] = ()
    method: str = ""
    name: str = ""
    arguments: bytes = b""
    server: str = ""


def state_binding(principal: tuple[str, ...], method: str, params: Mapping[str, Any], server: str = "") -> Binding:
    """Return what the state of one request is bound to: who asks for what, with which arguments (S-116)."""
    name = params.get("uri" if method == "resources/read" else "name")
    return Binding(
        "state", principal, method, name if isinstance(name, str) else "", digest(params.get("arguments")), server
    )


def handle_binding(principal: tuple[str, ...], server: str = "") -> Binding:
    """Return what a handle is bound to: its principal, whatever the request (X-04)."""
    return Binding("handle", principal, server=server)


class _Crypto(NamedTuple):
    aead: Any
    hkdf: Any
    sha256: Any
    invalid: type[Exception]


@cache
def _crypto() -> _Crypto:
    # Imported at the first use: a process that never seals does not pay for it.
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return _Crypto(AESGCM, HKDF, SHA256, InvalidTag)


def _associated(scope: tuple[str, ...], binding: Binding, head: bytes) -> bytes:
    """Join everything a text is bound to, each part with its length so that no two bindings look alike."""
    texts = (*scope, binding.purpose, binding.server, binding.method, binding.name, *binding.principal)
    parts = [head, binding.arguments, *(text.encode("utf-8", "surrogatepass") for text in texts)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _cipher(secret: bytes, salt: bytes) -> tuple[Any, bytes]:
    crypto = _crypto()
    material = crypto.hkdf(crypto.sha256(), 44, salt, _INFO).derive(secret)
    return crypto.aead(material[:32]), material[32:]


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _expiry(ttl: Any, now: float) -> int:
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl <= _LONGEST_TTL:
        raise ValueError("the ttl of sealed text is a number of seconds above 0, ten years at most")
    return _milliseconds(now) + max(1, _milliseconds(ttl))


def _seal(payload: Any, key: Key, scope: tuple[str, ...], binding: Binding, expiry: int) -> str:
    check_json(payload, "a sealed payload")
    try:
        plaintext = orjson.dumps([expiry, payload])
    except TypeError as exc:
        raise TypeError(f"a sealed payload must be JSON: {exc}") from None
    head = key.id + os.urandom(_SALT)
    aead, nonce = _cipher(key.secret, head[KEY_ID_BYTES:])
    sealed = aead.encrypt(nonce, plaintext, _associated(scope, binding, head))
    text = _PREFIX + base64.urlsafe_b64encode(head + sealed).decode().rstrip("=")
    if len(text) > MAX_SEALED:
        raise ValueError(
            f"the payload seals to {len(text)} characters and {MAX_SEALED} is the limit; "
            "keep the data in a store of your own and seal its key"
        )
    return text


class _Sealed(NamedTuple):
    key_id: bytes
    head: bytes
    ciphertext: bytes


def _read(text: Any) -> _Sealed:
    if not isinstance(text, str) or len(text) > MAX_SEALED or not text.startswith(_PREFIX):
        raise SealError("malformed")
    body = text[len(_PREFIX) :]
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    except ValueError:
        raise SealError("malformed") from None
    # The decoder skips foreign characters and stray bits; only the one text that was written is taken.
    if len(raw) < _HEAD + _TAG or base64.urlsafe_b64encode(raw).decode().rstrip("=") != body:
        raise SealError("malformed")
    return _Sealed(raw[:KEY_ID_BYTES], raw[:_HEAD], raw[_HEAD:])


def _open(sealed: _Sealed, key: Key, scope: tuple[str, ...], binding: Binding, now: float) -> tuple[Any, int]:
    """Return payload and expiry in milliseconds."""
    aead, nonce = _cipher(key.secret, sealed.head[KEY_ID_BYTES:])
    try:
        plaintext = aead.decrypt(nonce, sealed.ciphertext, _associated(scope, binding, sealed.head))
    except _crypto().invalid:
        raise SealError("altered") from None
    expiry, payload = orjson.loads(plaintext)
    if _milliseconds(now) > expiry:
        raise SealError("expired")
    return payload, expiry


class _Ring:
    """The keys as one event loop last read them."""

    __slots__ = ("first", "keys", "lock", "read_at")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.keys: dict[bytes, Key] = {}
        self.first: Key | None = None
        self.read_at = -math.inf


class Sealer:
    """
    Seals and opens with the keys of a ring, which it reads at first use, once for each process and event loop.

    Keys are read again when they are :data:`REFRESH` seconds old, so that a key which was taken off the ring stops
    working, and when a text names an unknown one, at most every :data:`REREAD` seconds.

    Args:
        ring: the keys, and the record of spent tokens.
        namespace: of the backend; texts of another do not open.
        audience: what the texts are for, such as the route; texts of another do not open.
        ttl: seconds until a text expires.
        clock: a monotonic clock.

    Raises:
        ValueError: the ttl is not a positive number of seconds.
    """

    REFRESH = 60.0
    REREAD = 3.0

    def __init__(
        self,
        ring: KeyRing,
        *,
        namespace: str = "",
        audience: str = "",
        ttl: float = 600,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _expiry(ttl, 0)
        self._ring = ring
        self._scope = (namespace, audience)
        self._ttl = ttl
        self._clock = clock
        self._pid = os.getpid()
        self._rings: WeakKeyDictionary[asyncio.AbstractEventLoop, _Ring] = WeakKeyDictionary()

    async def seal(self, payload: Any, binding: Binding, ttl: float | None = None, *, now: float | None = None) -> str:
        """
        Seal *payload*, a JSON value, so that it opens under *binding* only.

        Args:
            payload: the value; tuples come back as lists.
            binding: what it is good for.
            ttl: seconds until it expires; the sealer's own by default.
            now: seconds since the epoch.

        Raises:
            TypeError: the payload is not JSON.
            ValueError: it is too large, or the ttl is not a positive number of seconds.
        """
        expiry = _expiry(self._ttl if ttl is None else ttl, time.time() if now is None else now)
        ring = await self._current()
        assert ring.first is not None
        return _seal(payload, ring.first, self._scope, binding, expiry)

    async def open(self, text: Any, binding: Binding, *, spend: bool = False, now: float | None = None) -> Any:
        """
        Return what was sealed. A text still opens in the very millisecond it expires in.

        Args:
            text: what the client sent, of any type.
            binding: what it must be good for.
            spend: open it this once and never again.
            now: seconds since the epoch.

        Raises:
            SealError: it does not open.
        """
        sealed = _read(text)
        ring = await self._current()
        key = ring.keys.get(sealed.key_id)
        if key is None and self._clock() - ring.read_at >= self.REREAD:
            await self._read_again(ring)
            key = ring.keys.get(sealed.key_id)
        if key is None:
            raise SealError("unknown_key")
        payload, expiry = _open(sealed, key, self._scope, binding, time.time() if now is None else now)
        if spend and not await self._ring.spend(sealed.head, (expiry + 1) / 1000):
            raise SealError("spent")
        return payload

    async def _current(self) -> _Ring:
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._rings = WeakKeyDictionary()
        loop = asyncio.get_running_loop()
        ring = self._rings.get(loop)
        if ring is None:
            ring = self._rings.setdefault(loop, _Ring())
        if ring.first is None:
            async with ring.lock:
                if ring.first is None:
                    await self._fill(ring)
        elif self._clock() - ring.read_at >= self.REFRESH:
            await self._read_again(ring)
        return ring

    async def _read_again(self, ring: _Ring) -> None:
        seen = ring.read_at
        async with ring.lock:
            if ring.read_at != seen:
                return
            try:
                await self._fill(ring)
            except Exception:
                # The keys at hand still work; asking again at every request would not bring the backend back.
                ring.read_at = self._clock()
                _log.warning("the keys of sealed text could not be read again", exc_info=True)

    async def _fill(self, ring: _Ring) -> None:
        keys = await self._ring.keys()
        if not keys:
            raise RuntimeError("the key ring is empty")
        ring.keys = {key.id: key for key in keys}
        ring.first = keys[0]
        ring.read_at = self._clock()


class RequestStateCodec:
    """
    Seals state that you carry by hand, for example as an argument of a tool.

    ``input_required(state=...)`` needs none of this: its state is sealed anyway. Texts of a codec open with a codec
    of the same keys and audience only, never as request state.

    Args:
        keys: secrets of 32 bytes or more; the first seals, all open.
        ttl: seconds until a text expires.
        audience: what the texts are for.

    Raises:
        TypeError: *keys* is no sequence of str or bytes.
        ValueError: a key is too short or given twice, or the ttl is not a positive number of seconds.
    """

    def __init__(self, keys: Iterable[str | bytes], *, ttl: float = 600, audience: str = "") -> None:
        _expiry(ttl, 0)
        parsed = parse_keys(keys, "keys")
        self._first = parsed[0]
        self._keys = {key.id: key for key in parsed}
        self._ttl = ttl
        self._scope = ("", audience)

    def mint(
        self,
        payload: Any,
        *,
        principal: str | Sequence[str] = (),
        method: str = "",
        name: str = "",
        arguments: Any = None,
        ttl: float | None = None,
        now: float | None = None,
    ) -> str:
        """
        Seal *payload*, a JSON value. It opens only with the same principal, method, name and arguments.

        Args:
            payload: the value.
            principal: who it is for.
            method: the request it belongs to.
            name: the tool, prompt or resource it belongs to.
            arguments: the arguments it belongs to, compared as JSON.
            ttl: seconds until it expires; the codec's own by default.
            now: seconds since the epoch.

        Raises:
            TypeError: the payload or the arguments are not JSON.
            ValueError: the payload is too large.
        """
        expiry = _expiry(self._ttl if ttl is None else ttl, time.time() if now is None else now)
        return _seal(payload, self._first, self._scope, _codec_binding(principal, method, name, arguments), expiry)

    def verify(
        self,
        text: Any,
        *,
        principal: str | Sequence[str] = (),
        method: str = "",
        name: str = "",
        arguments: Any = None,
        now: float | None = None,
    ) -> Any:
        """
        Return what :meth:`mint` sealed for the same principal, method, name and arguments.

        Raises:
            SealError: the text is not such a text, is altered, foreign or expired.
        """
        sealed = _read(text)
        key = self._keys.get(sealed.key_id)
        if key is None:
            raise SealError("unknown_key")
        binding = _codec_binding(principal, method, name, arguments)
        return _open(sealed, key, self._scope, binding, time.time() if now is None else now)[0]


def _codec_binding(principal: str | Sequence[str], method: str, name: str, arguments: Any) -> Binding:
    who = (principal,) if isinstance(principal, str) else tuple(principal)
    return Binding("codec", who, method, name, digest(arguments))
