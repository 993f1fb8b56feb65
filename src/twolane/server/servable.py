"""What a lane asks of whatever a factory returns."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from twolane.protocol.headers import HeaderParam
    from twolane.protocol.inputs import InputRequired
    from twolane.protocol.revisions import Era
    from twolane.server.context import Call

__all__ = ["Servable"]


class Servable(Protocol):
    """
    A server that a lane can serve: a :class:`~twolane.server.server.McpServer`, or a guest behind the same face.

    The lane itself answers ``server/discover``, ``initialize``, ``ping``, ``subscriptions/listen``,
    ``logging/setLevel`` and ``resources/(un)subscribe``; everything else goes through :meth:`dispatch`.
    """

    def info(self) -> dict[str, Any]:
        """The server's Implementation: ``name``, ``version`` and perhaps more of what describes it."""

    def instructions_text(self) -> str | None:
        """How to use the server, for the client's model."""

    def capabilities(self, era: Era, *, push: bool) -> dict[str, Any]:
        """
        What the server can do, derived from what is registered (S-081).

        Args:
            era: the era the answer is for; extensions are a modern notion.
            push: whether change notices reach the client here (S-082).
        """

    def cache_hint(self, method: str) -> tuple[int, str]:
        """The configured ``(ttlMs, cacheScope)`` of a cacheable method (server/utilities/caching)."""

    def header_params(self, tool: str) -> tuple[HeaderParam, ...]:
        """The ``x-mcp-header`` declarations of *tool*; none for a tool that cannot be called."""

    def dispatch(self, call: Call) -> Coroutine[Any, Any, dict[str, Any] | InputRequired]:
        """
        Serve one request.

        Returns:
            The result without ``resultType`` and server identity, or an ``InputRequired``.

        Raises:
            McpError: the request is answered with this error.
        """
