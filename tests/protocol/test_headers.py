"""Headers: one pass over the raw list, the value codec, and the values of ``Mcp-*`` headers."""

from __future__ import annotations

import base64

import pytest

from twolane.protocol.headers import MAX_HEADER_SIZE, Headers, decode_value, encode_value, has_foreign_characters


def b64(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.obligation("S-037")
@pytest.mark.parametrize("name", [b"mcp-method", b"Mcp-Method", b"MCP-METHOD"])
def test_names_ignore_case(name: bytes) -> None:
    """A header is found whatever the case of its name, and its value keeps its own."""
    assert Headers([(name, b"Tools/List")]).get(b"mcp-method") == "Tools/List"


@pytest.mark.obligation("S-038")
@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"x", "x"),
        (b"  x", "x"),
        (b"x\t \t", "x"),
        (b"\tx y ", "x y"),
        (b"", ""),
        (b"  ", ""),
        (b"\x0bx\xa0", "\x0bx\xa0"),
        (b"\xc3\xa9", "Ã©"),
    ],
)
def test_optional_whitespace_is_stripped(sent: bytes, read: str) -> None:
    """Spaces and tabs around a value do not count; other bytes stay, read as Latin-1."""
    assert Headers([(b"mcp-name", sent)]).get(b"mcp-name") == read


@pytest.mark.obligation("X-11")
def test_repeated_headers_are_joined() -> None:
    """A header sent twice is one list, which never equals either value, in whatever case its names came."""
    headers = Headers([(b"mcp-name", b"a"), (b"Mcp-Name", b" a "), (b"accept", b"x"), (b"MCP-NAME", b"")])
    assert headers.get(b"mcp-name") == "a, a, "
    assert headers.get(b"accept") == "x"


def test_other_headers_are_left_alone() -> None:
    """Headers that nothing here reads are not kept, and count for nothing."""
    headers = Headers([(b"authorization", b"Bearer secret"), (b"cookie", b"a=b"), (b"x-mcp-param-a", b"1")])
    assert headers.get(b"authorization") is None
    assert headers.get(b"mcp-method") is None
    assert list(headers.params()) == []
    assert headers.size == 0


def test_parameter_headers_are_listed() -> None:
    """Every Mcp-Param-* header is listed by its lower-case name."""
    headers = Headers([(b"Mcp-Param-Region", b"eu"), (b"mcp-param-", b"x"), (b"host", b"h"), (b"MCP-PARAM-A", b" 1")])
    assert dict(headers.params()) == {b"mcp-param-region": "eu", b"mcp-param-": "x", b"mcp-param-a": "1"}


@pytest.mark.obligation("S-059")
def test_sizes_are_counted() -> None:
    """The size is that of all values read here, repeated and stripped ones included."""
    assert Headers([]).size == 0
    assert (
        Headers([(b"accept", b"abc"), (b"accept", b" d "), (b"mcp-param-x", b"12"), (b"cookie", b"ignored")]).size == 8
    )
    assert MAX_HEADER_SIZE == 65536


class CountedBytes(bytes):
    """Counts how often values are decoded."""

    decoded = 0

    def decode(self, *args: str, **kwargs: str) -> str:
        CountedBytes.decoded += 1
        return super().decode(*args, **kwargs)


def test_many_repetitions_cost_one_look_each() -> None:
    """A header repeated thousands of times is looked at once per line and joined once."""
    CountedBytes.decoded = 0
    headers = Headers([(b"accept", CountedBytes(b"a"))] * 20_000)
    assert CountedBytes.decoded == 20_000
    assert headers.get(b"accept") == ", ".join(["a"] * 20_000)


@pytest.mark.obligation("S-040")
@pytest.mark.parametrize(
    ("value", "foreign"),
    [
        ("", False),
        ("tools/list", False),
        ("a b\tc", False),
        ("".join(map(chr, range(0x20, 0x7F))), False),
        ("\x1f", True),
        ("\x7f", True),
        ("\x00", True),
        ("a\r\nb", True),
        ("\x80", True),
        ("é", True),
        ("\xa0", True),
        ("\u2028", True),
        ("\ud800", True),
    ],
)
def test_foreign_characters(value: str, foreign: bool) -> None:
    """Visible ASCII, space and tab may stand in a header; anything else may not."""
    assert has_foreign_characters(value) is foreign


@pytest.mark.obligation("S-039")
@pytest.mark.parametrize(
    ("value", "decoded"),
    [
        ("=?base64?SGVsbG8=?=", "Hello"),
        ("=?base64??=", ""),
        ("=?base64?w6k=?=", "é"),
        ("=?base64?IHggIA==?=", " x  "),
        ("=?base64?DQo=?=", "\r\n"),
        (b64(b64("twice")), b64("twice")),
        # Not the whole form: literal text.
        ("Hello", "Hello"),
        ("", ""),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("=?Base64?SGVsbG8=?=", "=?Base64?SGVsbG8=?="),
        ("=?base64?", "=?base64?"),
        ("=?base64?=", "=?base64?="),
        ("x=?base64?SGVsbG8=?=", "x=?base64?SGVsbG8=?="),
        ("=?base64?SGVsbG8=?= ", "=?base64?SGVsbG8=?= "),
        ("=?utf-8?b?SGVsbG8=?=", "=?utf-8?b?SGVsbG8=?="),
        # The form with something else in it.
        ("=?base64?SGVsbG8?=", None),
        ("=?base64?SGVsbG8==?=", None),
        ("=?base64?SGVsbG8=SGVsbG8=?=", None),
        ("=?base64?SGVs!bG8=?=", None),
        ("=?base64?SGVs bG8=?=", None),
        ("=?base64?SGVsbG8=\n?=", None),
        ("=?base64?SGVsbG9=?=", None),
        ("=?base64?_-__?=", None),
        ("=?base64?=?=", None),
        ("=?base64?====?=", None),
        ("=?base64?A?=", None),
        ("=?base64?é?=", None),
        ("=?base64?/w==?=", None),
        ("=?base64?7aCA?=", None),
    ],
)
def test_base64_values(value: str, decoded: str | None) -> None:
    """The exact lower-case form is decoded, near misses are literal text, and a broken content is told from both."""
    assert decode_value(value) == decoded


@pytest.mark.obligation("S-039")
@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("plain value", "plain value"),
        ("a\tb", "a\tb"),
        ("=?base64?open", "=?base64?open"),
        ("", "=?base64??="),
        (" x", b64(" x")),
        ("x\t", b64("x\t")),
        ("é", b64("é")),
        ("a\nb", b64("a\nb")),
        ("=?base64?SGVsbG8=?=", b64("=?base64?SGVsbG8=?=")),
        ("=?base64?=", b64("=?base64?=")),
    ],
)
def test_values_are_encoded_where_they_must_be(value: str, encoded: str) -> None:
    """What would not survive as a plain header value travels as Base64, and comes back the same."""
    assert encode_value(value) == encoded
    assert decode_value(encoded) == value
