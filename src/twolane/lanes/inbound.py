"""One HTTP request after the edge let it in: all that a lane needs of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twolane.auth.info import ANONYMOUS
from twolane.lanes.exchange import Exchange

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from twolane.auth.info import AuthInfo, McpAuthContext, Principal
    from twolane.lanes.exchange import RawHeaders, StreamProfile
    from twolane.protocol.headers import Headers
    from twolane.protocol.media import Accepts

__all__ = ["Inbound"]


class Inbound:
    """
    An HTTP request on its way to a lane.

    ``cors`` are the response headers that every answer to it carries. The auth fields are filled in once the body
    has been understood.
    """

    __slots__ = (
        "_request",
        "accepts",
        "auth_context",
        "auth_info",
        "body",
        "cors",
        "headers",
        "principal",
        "receive",
        "scope",
        "send",
    )

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, headers: Headers, accepts: Accepts, cors: RawHeaders
    ) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.headers = headers
        self.accepts = accepts
        self.cors = cors
        self.body = b""
        self.auth_info: AuthInfo | None = None
        self.auth_context: McpAuthContext | None = None
        self.principal: Principal = ANONYMOUS
        self._request: Request | None = None

    def exchange(self, profile: StreamProfile, lane: str) -> Exchange:
        """Return the exchange that answers this request on *lane*."""
        return Exchange(self.receive, self.send, profile=profile, accepts=self.accepts, headers=self.cors, lane=lane)

    def request(self) -> Request:
        """Return the request as Starlette's class, built when somebody asks. Its body can be read again."""
        if self._request is None:
            from starlette.requests import Request

            self._request = Request(self.scope, self._replay)
        return self._request

    async def _replay(self) -> dict[str, Any]:
        return {"type": "http.request", "body": self.body, "more_body": False}
