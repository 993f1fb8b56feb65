"""``x-mcp-header`` declarations, and the headers that repeat a tool's arguments."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from twolane.protocol.headers import HeaderParam, Headers, check_params, header_params


def declared(name: object = "Region", kind: object = "string", **more: object) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name, **more}


def tool(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.obligation("S-050")
@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({}, []),
        (tool(a={"type": "string"}), []),
        (tool(a=declared()), [("mcp-param-region", ("a",), "string")]),
        (tool(a=declared("A", "integer")), [("mcp-param-a", ("a",), "integer")]),
        (tool(a=declared("A", "boolean")), [("mcp-param-a", ("a",), "boolean")]),
        (tool(a=declared("!#$%&'*+.^_`|~0Z-")), [("mcp-param-!#$%&'*+.^_`|~0z-", ("a",), "string")]),
        (tool(a=tool(b=tool(c=declared("C")))), [("mcp-param-c", ("a", "b", "c"), "string")]),
        (
            tool(a=declared("A"), b=declared("B")),
            [("mcp-param-a", ("a",), "string"), ("mcp-param-b", ("b",), "string")],
        ),
        # Properties that are named like keywords are properties.
        (tool(items=declared("A")), [("mcp-param-a", ("items",), "string")]),
        (tool(properties=tool(a=declared("A"))), [("mcp-param-a", ("properties", "a"), "string")]),
        # A property named x-mcp-header declares nothing, and neither does data.
        (tool(**{"x-mcp-header": {"type": "string"}}), []),
        (tool(a={"type": "object", "default": {"x-mcp-header": 5}, "examples": [{"x-mcp-header": ""}]}), []),
        ({**tool(), "dependentRequired": {"x-mcp-header": ["a"]}}, []),
        ({**tool(), "dependencies": {"x-mcp-header": ["a"]}}, []),
        ({**tool(), "$defs": {"x-mcp-header": {"type": "string"}}}, []),
        ({**tool(), "patternProperties": {"x-mcp-header": {"type": "string"}}}, []),
    ],
)
def test_declarations_are_collected(schema: dict[str, Any], found: list[tuple[object, ...]]) -> None:
    """Declarations reached through properties alone are found, with their header, path and type."""
    assert sorted(header_params(schema)) == [HeaderParam(*one) for one in found]  # type: ignore[arg-type]


@pytest.mark.obligation("S-050")
@pytest.mark.parametrize(
    "name",
    ["", " ", "a b", "a:b", "a\n", "a\r\nb", "é", "a/b", "(a)", "a,b", '"a"', "\x7f", None, 5, True, ["a"], {}],
)
def test_names_are_tokens(name: object) -> None:
    """A declared name is a non-empty HTTP token: anything that could break out of a header is refused."""
    with pytest.raises(ValueError, match="must be a non-empty HTTP token"):
        header_params(tool(a=declared(name)))


@pytest.mark.obligation("S-050")
@pytest.mark.parametrize("kind", ["number", "object", "array", "null", None, ["string", "null"], ["string"], {}, 5])
def test_types_are_primitive(kind: object) -> None:
    """Strings, integers and booleans have one text each; number and unions have not, and are refused."""
    with pytest.raises(ValueError, match="needs the type string, integer or boolean"):
        header_params(tool(a=declared(kind=kind)))


@pytest.mark.obligation("S-050")
def test_a_type_is_needed() -> None:
    """A declaration on a property without a type is refused, a const or an enum notwithstanding."""
    with pytest.raises(ValueError, match="needs the type"):
        header_params(tool(a={"x-mcp-header": "A", "enum": ["x"]}))


@pytest.mark.obligation("S-050")
@pytest.mark.parametrize(
    "schema",
    [
        tool(a=declared("Region"), b=declared("Region")),
        tool(a=declared("Region"), b=declared("rEGION")),
        tool(a=declared("Region"), b=tool(c=declared("region"))),
    ],
)
def test_names_are_unique(schema: dict[str, Any]) -> None:
    """Two declarations of one name, compared ignoring case, are refused over the whole schema."""
    with pytest.raises(ValueError, match="declared twice"):
        header_params(schema)


@pytest.mark.obligation("S-050")
@pytest.mark.parametrize(
    "schema",
    [
        declared(),
        tool(a={"type": "array", "items": declared()}),
        tool(a={"type": "array", "items": tool(b=declared())}),
        tool(a={"type": "array", "prefixItems": [declared()]}),
        tool(a={"type": "array", "contains": declared()}),
        *({**tool(), keyword: [tool(a=declared())]} for keyword in ("oneOf", "anyOf", "allOf")),
        *(
            {**tool(), keyword: declared()}
            for keyword in (
                "not",
                "if",
                "then",
                "else",
                "additionalProperties",
                "unevaluatedProperties",
                "unevaluatedItems",
                "propertyNames",
            )
        ),
        *(
            {**tool(), keyword: {"x": declared()}}
            for keyword in ("$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies")
        ),
        tool(a={"$ref": "#/$defs/a"}) | {"$defs": {"a": declared()}},
        tool(a={"anyOf": [declared(), {"type": "null"}]}),
        {**tool(), "vendor-extension": {"deep": [declared()]}},
    ],
)
def test_declarations_elsewhere_are_refused(schema: dict[str, Any]) -> None:
    """Under items, composition, conditionals, definitions or at the root there is no one argument to repeat."""
    with pytest.raises(ValueError, match="must be reached through 'properties' alone"):
        header_params(schema)


def b64(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def check(value: object, sent: str | bytes | None, kind: str = "string", path: tuple[str, ...] = ("a",)) -> str | None:
    """Checks the header Mcp-Param-A against arguments that hold *value* at *path*; None leaves either out."""
    arguments: Any = value
    for key in reversed(path):
        arguments = {key: arguments}
    raw = [] if sent is None else [(b"Mcp-Param-A", sent if isinstance(sent, bytes) else sent.encode("latin-1"))]
    return check_params([HeaderParam("mcp-param-a", path, kind)], arguments, Headers(raw))


@pytest.mark.obligation("S-053", "S-055")
@pytest.mark.parametrize(
    ("value", "sent", "kind"),
    [
        ("x", "x", "string"),
        ("x", "  x ", "string"),
        ("x", b64("x"), "string"),
        ("a b\tc", "a b\tc", "string"),
        ("é", b64("é"), "string"),
        (" x ", b64(" x "), "string"),
        ("", "", "string"),
        ("", "=?base64??=", "string"),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?=", "string"),
        ("=?base64?eA==", "=?base64?eA==", "string"),
        ("42", "42", "string"),
        ("true", "true", "string"),
        (True, "true", "boolean"),
        (False, "false", "boolean"),
        (False, b64("false"), "boolean"),
        (42, "42", "integer"),
        (42, "42.0", "integer"),
        (42, "42.000", "integer"),
        (42.0, "42", "integer"),
        (42.0, "42.0", "integer"),
        (42, b64("42"), "integer"),
        (0, "0", "integer"),
        (0, "-0", "integer"),
        (-7, "-7", "integer"),
        (2**53 - 1, "9007199254740991", "integer"),
        (-(2**53) + 1, "-9007199254740991.0", "integer"),
    ],
)
def test_headers_that_agree(value: object, sent: str, kind: str) -> None:
    """Text agrees as text after Base64, booleans as true and false, and integers as numbers."""
    assert check(value, sent, kind) is None


@pytest.mark.obligation("S-052", "S-053", "X-11")
@pytest.mark.parametrize(
    ("value", "sent", "kind"),
    [
        ("x", None, "string"),
        ("", None, "string"),
        (0, None, "integer"),
        (False, None, "boolean"),
        ("x", "y", "string"),
        ("x", "X", "string"),
        ("x", "x, x", "string"),
        ("x", "", "string"),
        ("x", b64("y"), "string"),
        (b64("x"), b64("x"), "string"),
        (True, "True", "boolean"),
        (True, "1", "boolean"),
        (True, "false", "boolean"),
        (1, "true", "integer"),
        (42, "43", "integer"),
        (42, "42.5", "integer"),
        (42, "42.", "integer"),
        (42, "4.2e1", "integer"),
        (42, "0x2a", "integer"),
        (42, "+42", "integer"),
        (42, "4_2", "integer"),
        (42, "42 ,", "integer"),
        (42, "", "integer"),
        (42, "--42", "integer"),
        (42, "NaN", "integer"),
        (42.5, "42", "integer"),
        (2**53 - 1, "9007199254740992", "integer"),
        (1, "1" * 5_000, "integer"),
        (float("nan"), "nan", "integer"),
    ],
)
def test_headers_that_differ(value: object, sent: str | None, kind: str) -> None:
    """A missing header and any other value is a mismatch that names the header and does not repeat the argument."""
    detail = check(value, sent, kind)
    assert detail is not None
    assert detail.startswith("mcp-param-a ")


@pytest.mark.obligation("S-053")
def test_arabic_digits_are_not_decimal() -> None:
    """Only ASCII digits are numbers, even where Base64 lets others through."""
    assert check(42, b64("\u0664\u0662"), "integer") is not None
    assert check(42, b64("\uff14\uff12"), "integer") is not None


@pytest.mark.obligation("S-039")
@pytest.mark.parametrize("sent", ["=?base64?eA?=", "=?base64?!!!!?=", "=?base64?/w==?="])
def test_broken_base64_is_a_mismatch(sent: str) -> None:
    """The Base64 form around something else is refused as such."""
    assert check("x", sent) == "mcp-param-a is not valid Base64 of UTF-8"


@pytest.mark.obligation("S-040")
@pytest.mark.parametrize(("value", "sent"), [("é", "é"), ("é", "é".encode()), ("\x01", b"\x01"), (None, b"\xff")])
def test_foreign_characters_are_refused(value: object, sent: str | bytes) -> None:
    """Raw characters outside visible ASCII are refused, even where they equal the argument."""
    assert "characters outside visible ASCII" in (check(value, sent) or "")


@pytest.mark.obligation("S-054", "X-11")
@pytest.mark.parametrize("sent", ["", "x", "null", "=?base64?!?="])
@pytest.mark.parametrize(
    "arguments", [{}, {"a": None}, {"b": "x"}, {"a": {}}, {"a": {"b": None}}, {"a": "x"}, {"a": [{"b": "x"}]}]
)
def test_a_header_without_its_argument_is_a_mismatch(arguments: dict[str, Any], sent: str) -> None:
    """A header for an argument that is absent or null is refused: a proxy acted on what the server never sees."""
    path = ("a", "b") if arguments.get("a") is not None else ("a",)
    headers = Headers([(b"mcp-param-a", sent.encode())])
    assert check_params([HeaderParam("mcp-param-a", path, "string")], arguments, headers) is not None
    assert check_params([HeaderParam("mcp-param-a", path, "string")], arguments, Headers([])) is None


@pytest.mark.obligation("S-055")
def test_nested_arguments() -> None:
    """A nested argument is read along its path."""
    assert check("x", "x", path=("a", "b", "c")) is None
    assert check("x", "y", path=("a", "b", "c")) == "mcp-param-a differs from the argument a.b.c"
    assert check("x", None, path=("a", "b")) == "mcp-param-a is missing, but the argument a.b is sent"


@pytest.mark.obligation("S-051")
@pytest.mark.parametrize("value", [2**53, -(2**53), 10**30, 1e16, 1e300, float("inf")])
def test_integers_are_safe_ones(value: float) -> None:
    """A number that a double rounds is refused, however it is spelled and whatever the header says."""
    for sent in (None, str(value), format(value, ".0f")):
        assert check(value, sent, "integer") == "the argument a is outside the range an annotated integer may have"


def test_wrong_types_are_left_to_validation() -> None:
    """An object or an array where a primitive belongs is the arguments' own fault, not the headers'."""
    for value in ({}, [], ["x"], {"b": 1}):
        assert check(value, None) is None
        assert check(value, "x") is None


@pytest.mark.obligation("S-056")
def test_headers_that_no_schema_names_are_ignored() -> None:
    """Further Mcp-Param-* headers mean nothing here, whatever they hold."""
    headers = Headers([(b"mcp-param-a", b"x"), (b"mcp-param-other", b"\xff"), (b"mcp-param-b", b"=?base64?!?=")])
    assert check_params([HeaderParam("mcp-param-a", ("a",), "string")], {"a": "x"}, headers) is None
    assert check_params([], {}, headers) is None


def test_every_declaration_is_checked() -> None:
    """One agreement does not cover for another disagreement."""
    declarations = [HeaderParam("mcp-param-a", ("a",), "string"), HeaderParam("mcp-param-b", ("b",), "string")]
    headers = Headers([(b"mcp-param-a", b"x"), (b"mcp-param-b", b"z")])
    assert check_params(declarations, {"a": "x", "b": "y"}, headers) == "mcp-param-b differs from the argument b"
