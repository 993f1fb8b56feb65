"""Pages under opaque cursors (server/utilities/pagination)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twolane.errors import INVALID_PARAMS, InvalidParams
from twolane.server.pagination import paginate

NAMES = [f"tool-{index}" for index in range(10)]


def page(
    names: list[str], cursor: object = None, size: int | None = 3, kind: str = "tools/list"
) -> tuple[list[str], str | None]:
    params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
    found, following = paginate(kind, names, str, params, size)
    return list(found), following


@pytest.mark.obligation("S-091", "S-092")
@given(count=st.integers(0, 30), size=st.integers(1, 12))
def test_the_pages_make_up_the_list(count: int, size: int) -> None:
    """Following the cursors yields every entry once, in order, and the last page has no cursor."""
    names = [f"n{index}" for index in range(count)]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        # A copy each time: nothing but the cursor is carried over.
        found, cursor = page(list(names), cursor, size)
        seen += found
        if cursor is None:
            break
        assert len(found) == size
    assert seen == names


@pytest.mark.obligation("S-092")
def test_without_a_size_there_is_one_page() -> None:
    """An unpaged list is whole and carries no cursor."""
    assert page(NAMES, size=None) == (NAMES, None)


@pytest.mark.obligation("S-092")
def test_a_cursor_holds_while_the_list_changes() -> None:
    """Entries that come or go before the cursor shift nothing: the next page starts behind the last entry seen."""
    first, cursor = page(NAMES)
    assert first == NAMES[:3]
    assert page(NAMES[1:], cursor)[0] == NAMES[3:6]
    assert page(["new", *NAMES], cursor)[0] == NAMES[3:6]


@pytest.mark.obligation("S-092")
def test_a_cursor_whose_entry_is_gone_is_invalid() -> None:
    """When the last entry seen is gone the client is told to start again."""
    _, cursor = page(NAMES)
    with pytest.raises(InvalidParams, match="cursor"):
        page([name for name in NAMES if name != "tool-2"], cursor)


def _forged(text: bytes) -> str:
    return urlsafe_b64encode(text).decode()


@pytest.mark.obligation("S-092")
@pytest.mark.parametrize(
    "cursor",
    ["", "!", "abc", "é", "x" * 20000, 7, True, ["tool-2"], _forged(b"\xff"), _forged(b"{}"), _forged(b"[]"),
     _forged(b'["tools/list"]'), _forged(b'["tools/list",3,"unknown"]'), _forged(b'["tools/list",-1,"x"]'),
     _forged(b'["tools/list","3","tool-2"]'), _forged(b'["prompts/list",3,"tool-2"]')],
)  # fmt: skip
def test_other_cursors_are_invalid_params(cursor: object) -> None:
    """An empty, foreign, forged or malformed cursor is -32602, not the first page."""
    with pytest.raises(InvalidParams) as caught:
        page(NAMES, cursor)
    assert caught.value.code == INVALID_PARAMS
    assert caught.value.data == {"reason": "invalid_cursor"}


@pytest.mark.obligation("S-092")
def test_a_null_cursor_is_no_cursor() -> None:
    """A cursor member that is null is refused: it is no string."""
    with pytest.raises(InvalidParams):
        paginate("tools/list", NAMES, str, {"cursor": None}, 3)


@pytest.mark.obligation("S-092")
def test_a_cursor_opens_its_own_list_only() -> None:
    """A cursor of tools/list is none of prompts/list, even where both hold the same name."""
    _, cursor = page(NAMES)
    with pytest.raises(InvalidParams):
        page(NAMES, cursor, kind="prompts/list")


@given(st.text(max_size=40))
def test_no_text_breaks_the_decoder(text: str) -> None:
    """Any text is a valid cursor or -32602."""
    try:
        page(NAMES, text)
    except InvalidParams:
        pass
