"""
The checks before anything is understood: route, Host, Origin, preflight, method, media types, size.

Nothing of the application's runs before these pass, and every refusal is a JSON-RPC error that carries the CORS
headers, so that a page can read it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from twolane.protocol.guard import Guard, is_loopback
from twolane.protocol.headers import MAX_HEADER_SIZE, Headers
from twolane.protocol.media import Accepts, accepts, is_json
from twolane.protocol.refusal import Refusal, refuse

if TYPE_CHECKING:
    from starlette.types import Scope

    from twolane.protocol.cors import Cors

__all__ = ["Edge"]

_log = logging.getLogger("twolane.security")


class Edge:
    """
    Decides from the head of a request whether its body is worth reading.

    Args:
        paths: the paths that are answered, or None for all.
        guard: the Host and Origin decision.
        cors: the CORS answer.
        max_body_size: the largest body, in bytes.
        response_mode: with ``json``, a client that reads event streams only cannot be answered.
    """

    def __init__(
        self,
        paths: frozenset[str] | None,
        guard: Guard,
        cors: Cors,
        *,
        max_body_size: int,
        response_mode: str,
    ) -> None:
        self._paths = paths
        self._guard = guard
        self.cors = cors
        self._max_body_size = max_body_size
        self._json_only = response_mode == "json"
        self._warned = guard.settles_hosts

    def check(self, scope: Scope, headers: Headers) -> Refusal | Accepts | None:
        """
        Check the head of a request.

        Returns:
            A refusal, None for a preflight, or what the client accepts.
        """
        if self._paths is not None and (missed := self._check_path(scope)) is not None:
            return missed
        server = scope.get("server")
        address = server[0] if server else None
        if not self._warned and not is_loopback(address):
            self._warned = True
            _log.warning(
                "requests arrive on a socket that is not a loopback one and the Host header is not checked; "
                "set allowed_hostnames to the names this server is reached by"
            )
        refusal = self._guard.check(headers.get(b"host"), headers.get(b"origin"), address)
        if refusal is not None:
            return refusal
        method = scope["method"]
        if method != "POST":
            if self.cors.is_preflight(method, headers):
                return None
            return self._wrong_method(method)
        if headers.size > MAX_HEADER_SIZE:
            return refuse(431, "headers_too_large", f"The request's headers exceed {MAX_HEADER_SIZE} bytes")
        if not is_json(headers.get(b"content-type")):
            return refuse(415, "unsupported_media_type", "The Content-Type must be application/json")
        accepted = accepts(headers.get(b"accept"))
        if not accepted.json and (not accepted.sse or self._json_only):
            return refuse(406, "not_acceptable", "The Accept header excludes the answer; accept application/json")
        length = headers.get(b"content-length")
        if length is not None and (not length.isascii() or not length.isdigit() or len(length) > 18):
            return refuse(400, "invalid_content_length", "The Content-Length is not a number")
        if length is not None and int(length) > self._max_body_size:
            return self.too_large()
        return accepted

    def too_large(self) -> Refusal:
        """Refuse a body beyond the limit."""
        return refuse(
            413, "body_too_large", f"The request body exceeds {self._max_body_size} bytes", limit=self._max_body_size
        )

    def _check_path(self, scope: Scope) -> Refusal | None:
        path: str = scope["path"]
        root: str = scope.get("root_path", "")
        # Some servers leave the root path out of the path, so only whole segments count.
        stem = root.rstrip("/")
        if root and (path == stem or path.startswith(f"{stem}/")):
            path = path[len(root if path.startswith(f"{root}/") else stem) :]
            # Mounted: the mount's own path is the endpoint too.
            if path in ("", "/"):
                return None
        assert self._paths is not None
        if path in self._paths:
            return None
        served = min(self._paths) or "/"
        return refuse(404, "not_found", f"Nothing is served at this path; the MCP endpoint is {root}{served}")

    def _wrong_method(self, method: str) -> Refusal:
        allow = b"POST, OPTIONS" if self.cors.enabled else b"POST"
        return refuse(
            405,
            "method_not_allowed",
            f"This endpoint has no {method[:16]}: every message is sent by POST, and there are no sessions here",
            ((b"allow", allow),),
        )
