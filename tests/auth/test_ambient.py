"""Who is calling, as middleware left it in the scope."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.authentication import AuthCredentials, BaseUser, SimpleUser, UnauthenticatedUser

from twolane.auth.ambient import ConflictingIdentity, ambient_auth, settle
from twolane.auth.info import ANONYMOUS, AuthInfo, principal_of


class IdentifiedUser(BaseUser):
    """A user with an identity, as applications write them."""

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def display_name(self) -> str:
        return "Ada"

    @property
    def identity(self) -> str:
        return "user-7"


def test_no_middleware_is_anonymous() -> None:
    """Without authentication in front, nothing is known and the principal is the anonymous one."""
    assert ambient_auth({"type": "http"}) is None
    assert principal_of(None) == ANONYMOUS


def test_an_unauthenticated_user_is_anonymous() -> None:
    """Starlette's unauthenticated user counts as nobody."""
    scope = {"user": UnauthenticatedUser(), "auth": AuthCredentials()}
    assert ambient_auth(scope) is None


@pytest.mark.parametrize(("user", "subject"), [(IdentifiedUser(), "user-7"), (SimpleUser("ada"), "ada")])
def test_starlette_users_become_subjects(user: BaseUser, subject: str) -> None:
    """A user of Starlette's authentication middleware is the subject, its credentials are the scopes."""
    info = ambient_auth({"user": user, "auth": AuthCredentials(["read", "write"])})
    assert info == AuthInfo(subject=subject, scopes=("read", "write"))
    assert principal_of(info) == ("auth", "", subject, "")


def test_the_sdk_s_user_is_understood() -> None:
    """The authenticated user of the mcp package gives client, scopes, expiry, resource, subject and issuer."""
    token = AccessToken(
        token="secret",
        client_id="client-1",
        scopes=["tools"],
        expires_at=123,
        resource="https://mcp.example.com/mcp",
        subject="user-7",
        claims={"iss": "https://as.example.com", "sub": "user-7"},
    )
    info = ambient_auth({"user": AuthenticatedUser(token), "auth": AuthCredentials(["tools"])})
    assert info is not None
    assert (info.client_id, info.subject, info.issuer) == ("client-1", "user-7", "https://as.example.com")
    assert (info.token, info.scopes, info.expires_at) == ("secret", ("tools",), 123)
    assert "secret" not in repr(info)


@pytest.mark.obligation("X-03")
def test_a_rotated_token_keeps_its_principal() -> None:
    """The principal does not depend on the bytes of a token, so a refreshed one is the same caller."""
    first = AuthInfo(token="one", client_id="c", subject="s", issuer="i", expires_at=1)
    second = AuthInfo(token="two", client_id="c", subject="s", issuer="i", expires_at=2)
    assert principal_of(first) == principal_of(second)
    assert principal_of(first) != principal_of(AuthInfo(token="one", client_id="c", subject="other", issuer="i"))


def test_the_explicit_caller_wins() -> None:
    """What the application hands over goes before what middleware found."""
    explicit, ambient = AuthInfo(client_id="c", subject="explicit"), AuthInfo(client_id="c", subject="ambient")
    assert settle(explicit, ambient) is explicit
    assert settle(None, ambient) is ambient
    assert settle(explicit, None) is explicit
    assert settle(None, None) is None
    assert settle(explicit, AuthInfo(subject="ambient")) is explicit


def test_two_clients_are_a_conflict() -> None:
    """Two different client ids for one request are refused, and the error names neither."""
    with pytest.raises(ConflictingIdentity) as caught:
        settle(AuthInfo(client_id="one"), AuthInfo(client_id="two"))
    assert "one" not in str(caught.value).split()
    assert "two" not in str(caught.value).split()


def test_odd_users_do_not_break_the_request() -> None:
    """A user object with none of the usual attributes is nobody, one without any name is known by its type."""
    assert ambient_auth({"user": object()}) is None
    nameless: Any = SimpleNamespace(is_authenticated=True)
    info = ambient_auth({"user": nameless})
    assert info is not None
    assert info.subject is not None
