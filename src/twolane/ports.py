"""
What workers of one service share, as narrow protocols. Everything that implements them lives in
:mod:`twolane.backends`; one contract suite runs over all of it.

Each docstring says what a caller may rely on: what can be lost, doubled or reordered, and what survives a restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

__all__ = ["Backend", "Bus", "ChangeEvent", "Key", "KeyRing"]

KEY_ID_BYTES = 8
KEY_MIN_BYTES = 32


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """
    One change notice (basic/patterns/subscriptions).

    Args:
        kind: which list changed, or that a resource did.
        uri: of the resource, for ``resource_updated`` only.
    """

    kind: Literal["tools", "prompts", "resources", "resource_updated"]
    uri: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """
    One secret of the key ring.

    Args:
        id: eight bytes that name the key in sealed text; they are public.
        secret: 32 bytes or more, from which a key for each sealed text is derived.
    """

    id: bytes
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.id) != KEY_ID_BYTES:
            raise ValueError(f"the id of a key has {KEY_ID_BYTES} bytes")
        if len(self.secret) < KEY_MIN_BYTES:
            raise ValueError(f"the secret of a key has at least {KEY_MIN_BYTES} bytes")

    @classmethod
    def of(cls, secret: bytes) -> Key:
        """Return the key of *secret*, named by a digest so that every worker gives it the same id."""
        return cls(hashlib.sha256(b"twolane key id\0" + secret).digest()[:KEY_ID_BYTES], bytes(secret))


class Bus(Protocol):
    """
    Change notices between everything that shares a backend.

    Promises: each subscriber gets the notices of one publisher in the order they were published, each at most once,
    and only those published after it subscribed. Notices are not stored. A backend that may have lost some knows it
    and ends the streams that depend on them, so that clients come back and fetch anew; the memory backend loses none.
    """

    async def publish(self, event: ChangeEvent) -> None:
        """Hand *event* to every subscriber of every worker. With nobody subscribed it does nothing."""

    def subscribe(self, listener: Callable[[ChangeEvent], None]) -> Callable[[], None]:
        """
        Call *listener* for every event from now on.

        Args:
            listener: called on the event loop that is running now. It must not block; what it raises is logged and
                reaches neither the publisher nor other listeners.

        Returns:
            Ends the subscription; calling it again does nothing. After it, the listener is not called any more.
        """


class KeyRing(Protocol):
    """
    The secrets behind sealed state and handles, and the record of what was spent.

    Promises: whoever shares the backend sees the same keys, and a token is spent exactly once among them. Keys live as
    long as the backend's data; with the memory backend, as long as the process.
    """

    async def keys(self) -> Sequence[Key]:
        """Return the keys, never none: the first seals, all of them open. Creates the first one where needed."""

    async def spend(self, token_id: bytes, until: float) -> bool:
        """
        Mark a token as used.

        Args:
            token_id: what tells the token from every other.
            until: when the token expires, in seconds since the epoch; the mark is kept at least so long.

        Returns:
            True for exactly one caller; False when it is spent already, or when it cannot be recorded.
        """


class Backend(Bus, KeyRing, Protocol):
    """One technology behind every port. Constructing it opens nothing."""

    @property
    def namespace(self) -> str:
        """Tells apart services that share one store."""

    async def aclose(self) -> None:
        """Let go of connections and tasks. Shared data stays. Closing twice does nothing."""
