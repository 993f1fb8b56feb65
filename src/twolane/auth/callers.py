"""Who makes a request, out of everything that may say so."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from twolane.auth.ambient import ambient_auth, settle
from twolane.auth.info import AuthInfo, McpAuthContext, Principal, principal_of

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["AUTH_INFO", "Caller", "Callers"]

#: Where ``handler.fetch`` leaves the auth info it was given, in the ASGI scope.
AUTH_INFO = "twolane.auth_info"


class Caller(NamedTuple):
    """What is known of the caller of one request."""

    auth_info: AuthInfo | None
    principal: Principal
    auth_context: McpAuthContext | None


class Callers:
    """
    Settles the caller of each request.

    Args:
        auth_context: the ``auth_context`` option: a value, a function of the request, or None for the props of the
            auth info.

    Raises:
        TypeError: the option is neither.
    """

    def __init__(self, auth_context: Any) -> None:
        self._option = _checked(auth_context)

    async def of(self, scope: Mapping[str, Any], request: Callable[[], Request]) -> Caller:
        """
        Return the caller. What was handed over goes before what middleware left in the scope.

        Raises:
            ConflictingIdentity: the two name different clients.
            Exception: whatever the option or a user object raises.
        """
        auth_info = settle(scope.get(AUTH_INFO), ambient_auth(scope))
        context = self._option
        if context is None:
            props = auth_info.extra.get("props") if auth_info is not None else None
            context = McpAuthContext(props) if isinstance(props, Mapping) else None
        elif callable(context):
            context = context(request())
            if inspect.isawaitable(context):
                context = await context
            if context is not None and not isinstance(context, McpAuthContext):
                raise TypeError(f"auth_context returned {type(context).__name__}, not a McpAuthContext")
        return Caller(auth_info, principal_of(auth_info), context)


def _checked(option: Any) -> Any:
    if option is None or isinstance(option, McpAuthContext) or callable(option):
        return option
    raise TypeError(f"auth_context takes a McpAuthContext or a function of the request, not {type(option).__name__}")
