"""JSON-RPC messages: strict bytes in, one checked message or a refusal out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson
import pytest
from tests.support.posts import LEFT_OUT, message

from twolane.errors import INVALID_REQUEST
from twolane.protocol.message import (
    MAX_BATCH,
    MAX_DEPTH,
    MAX_SAFE_INTEGER,
    DecodeError,
    EncodeError,
    Message,
    PostedResponse,
    decode,
    encode,
    error_message,
    frame,
    is_text,
    readable_id,
    result_message,
)
from twolane.protocol.refusal import Refusal

# Sends a body through the exact decoder, which takes over where orjson would round.
WIDE = "1234567890123456789012"
SURROGATE = "\ud800"


def nested(opening: str, closing: str, levels: int) -> bytes:
    return (opening * levels + "1" + closing * levels).encode()


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": [1, 2.5, true, null, "x"]}', {"a": [1, 2.5, True, None, "x"]}),
        (b" \t\r\n[1] \n", [1]),
        (b"-0", 0),
        (b"1.0", 1.0),
        (b"1e3", 1000.0),
        (b'"\\u0000\\ud83d\\ude00"', "\0\U0001f600"),
        ('"é\u2028\U0010ffff"'.encode(), "é\u2028\U0010ffff"),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (f'{{"a": 1, "a": {WIDE}}}'.encode(), {"a": int(WIDE)}),
        (b'{"": 0}', {"": 0}),
    ],
)
def test_json_is_decoded(body: bytes, value: object) -> None:
    """JSON is read as any decoder reads it, and of a repeated key the last value counts."""
    decoded = decode(body)
    assert decoded == value
    assert type(decoded) is type(value)


@pytest.mark.parametrize(
    "number",
    [2**53 - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64 - 1, 2**64, 2**64 + 1, -(2**64), 10**400 + 1],
)
def test_integers_are_exact(number: int) -> None:
    """An integer of any size is read as exactly that integer, never as a rounded one."""
    decoded = decode(f'{{"n": {number}}}'.encode())["n"]
    assert type(decoded) is int
    assert decoded == number


@pytest.mark.obligation("S-021")
@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"not json",
        b"{",
        b'{"a": 1,}',
        b"[1, ]",
        b"{} {}",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e400",
        b"-1e400",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b"0x10",
        b"'a'",
        b"{a: 1}",
        b"// comment\n1",
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\\x41"',
        b'"\x01"',
        b'"a\nb"',
        b'"\xff"',
        b'"\xc0\xaf"',
        b'"\xed\xa0\x80"',
        b'"\xf4\x90\x80\x80"',
        b'"\xe9"',
        b"\x0b1",
        b"1\x00",
        "\ufeff{}".encode(),
        "{}".encode("utf-16"),
        b"tru",
    ],
)
def test_what_is_not_strict_json_is_refused(text: bytes, exactly: bool) -> None:
    """No NaN, no Infinity, no lone surrogate, no byte order mark and nothing but UTF-8, on both decoding paths."""
    with pytest.raises(DecodeError):
        decode(b"[%s, %s]" % (text, WIDE.encode()) if exactly else text)


@pytest.mark.obligation("X-15")
def test_the_limits() -> None:
    """The limits are what the documentation says."""
    assert MAX_DEPTH == 200
    assert MAX_BATCH == 100
    assert MAX_SAFE_INTEGER == 9_007_199_254_740_991


@pytest.mark.obligation("X-15")
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_depth_is_bounded(brackets: tuple[str, str]) -> None:
    """Arrays and objects nest up to the limit; one more is refused, and so are millions."""
    levels = MAX_DEPTH // (2 if len(brackets[1]) == 2 else 1)
    decode(nested(*brackets, levels))
    for more in (levels + 1, 1_000, 1_000_000):
        with pytest.raises(DecodeError):
            decode(nested(*brackets, more))


def test_only_depth_counts() -> None:
    """Many brackets side by side are not depth, and brackets inside strings are none."""
    assert len(decode(b"[" + b",".join([b"[{}]"] * 1_000) + b"]")) == 1_000
    assert decode(b'"' + b"[{" * 1_000 + b'"') == "[{" * 1_000


def test_a_decode_error_does_not_quote_the_body() -> None:
    """What was sent may be secret, so the reason says where the fault is and not what stood there."""
    for body in (b'{"token": hunter2}', f'[{WIDE}, "hunter2\x01"]'.encode()):
        with pytest.raises(DecodeError) as caught:
            decode(body)
        assert "hunter2" not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ({"a": [1, None, "é\n"]}, '{"a":[1,null,"é\\n"]}'),
        ((1, 2), "[1,2]"),
        ("null", '"null"'),
        ({"a": orjson.Fragment(b'{"b":null}')}, '{"a":{"b":null}}'),
        (2**64 - 1, "18446744073709551615"),
        (1.0, "1.0"),
    ],
)
def test_values_are_encoded_compactly(value: object, encoded: str) -> None:
    """Values become compact UTF-8 JSON on one line, with fragments spliced in."""
    assert encode(value) == encoded.encode()


@dataclass
class Reading:
    celsius: float


class Level(Enum):
    UNKNOWN = float("nan")


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        {"a": [float("inf")]},
        (float("-inf"),),
        Reading(float("nan")),
        [Level.UNKNOWN],
        {1: 2},
        {None: 1},
        SURROGATE,
        {SURROGATE: 1},
        2**64,
        -(2**63) - 1,
        b"bytes",
        {1, 2},
        object(),
        CYCLE,
    ],
)
def test_what_has_no_json_form_is_refused(value: object) -> None:
    """What JSON cannot say is an error here, never a null or an invalid text on the wire."""
    with pytest.raises(EncodeError):
        encode({"value": value})


@pytest.mark.obligation("S-023")
@pytest.mark.parametrize("request_id", [0, 1, -5, MAX_SAFE_INTEGER, "", "1", "é"])
def test_answers_keep_the_id_and_its_type(request_id: int | str) -> None:
    """Results and errors carry the request's id as it came: 1 stays a number, "1" a string, and 0 and "" count."""
    for encoded in (result_message(request_id, {}), error_message(request_id, -32603, "Oops")):
        answer = json.loads(encoded)
        assert answer["id"] == request_id
        assert type(answer["id"]) is type(request_id)
        assert answer["jsonrpc"] == "2.0"


@pytest.mark.obligation("S-023", "S-024")
@pytest.mark.parametrize(
    ("arguments", "options", "answer"),
    [
        ((1, -32602, "No"), {}, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "No"}}),
        (
            ("a", 7, "No", {"x": None}),
            {"null_id": True},
            {"jsonrpc": "2.0", "id": "a", "error": {"code": 7, "message": "No", "data": {"x": None}}},
        ),
        ((1, 7, "No", []), {}, {"jsonrpc": "2.0", "id": 1, "error": {"code": 7, "message": "No", "data": []}}),
        ((None, 7, "No"), {}, {"jsonrpc": "2.0", "error": {"code": 7, "message": "No"}}),
        ((None, 7, "No"), {"null_id": True}, {"jsonrpc": "2.0", "id": None, "error": {"code": 7, "message": "No"}}),
    ],
)
def test_errors_have_the_shape_of_the_specification(
    arguments: tuple[Any, ...], options: dict[str, bool], answer: dict[str, Any]
) -> None:
    """An error has code, message and data where there is some; without a readable id there is none, or null of old."""
    assert json.loads(error_message(*arguments, **options)) == answer


@pytest.mark.obligation("S-022")
@pytest.mark.parametrize("request_id", [0, -1, "", "a", "é", MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER])
def test_requests_are_framed(request_id: int | str) -> None:
    """A request with a string or an integer as id is one, 0 and the empty string included."""
    assert frame(message(id=request_id)) == Message(request_id, "tools/list", None)
    assert frame(message(id=request_id, params={"a": 1})) == Message(request_id, "tools/list", {"a": 1})


@pytest.mark.parametrize("meta", [{}, {"a": 1}, *({"progressToken": token} for token in (0, "", "t", -1))])
def test_meta_is_framed(meta: dict[str, Any]) -> None:
    """_meta is any object, and a progress token in it is a string or an integer."""
    assert frame(message(params={"_meta": meta})) == Message(1, "tools/list", {"_meta": meta})


def test_notifications_are_framed() -> None:
    """Without an id it is a notification, whatever the method."""
    assert frame(message("tools/call", id=LEFT_OUT)) == Message(None, "tools/call", None)
    assert frame(message("n", id=LEFT_OUT, params={})) == Message(None, "n", {})


@pytest.mark.obligation("S-022")
@pytest.mark.parametrize(
    "request_id",
    [None, True, False, 1.0, 1.5, 1e300, [], {}, [1], MAX_SAFE_INTEGER + 1, -MAX_SAFE_INTEGER - 1, 10**30, SURROGATE],
)
def test_ids_of_other_types_are_refused(request_id: object) -> None:
    """Null, booleans, floats and integers that a double cannot hold are no ids, and are not sent back as one."""
    refusal = frame(message(id=request_id))
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code, refusal.id) == (400, INVALID_REQUEST, None)


@pytest.mark.obligation("S-020", "S-023")
@pytest.mark.parametrize(
    ("value", "request_id"),
    [
        (None, None),
        (True, None),
        (5, None),
        (1.5, None),
        ("tools/list", None),
        ({}, None),
        (message(jsonrpc=LEFT_OUT), 1),
        (message(jsonrpc="1.0"), 1),
        (message(jsonrpc=2.0), 1),
        (message(jsonrpc=None, id="a"), "a"),
        (message(jsonrpc=["2.0"]), 1),
        (message(method=None), None),
        (message(method=5), None),
        (message(method=["tools/list"]), None),
        (message(method=SURROGATE), 1),
        (message(method=LEFT_OUT), None),
        (message(params=None), 1),
        (message(params=[]), 1),
        (message(params=[1]), 1),
        (message(params="x"), 1),
        (message(params=0), 1),
        (message(params={"_meta": None}), 1),
        (message(params={"_meta": []}), 1),
        (message(params={"_meta": "x"}), 1),
        (message(params={"_meta": {"progressToken": None}}), 1),
        (message(params={"_meta": {"progressToken": True}}), 1),
        (message(params={"_meta": {"progressToken": 1.5}}), 1),
        (message(params={"_meta": {"progressToken": {}}}), 1),
        (message(params={"_meta": {"progressToken": 2**53}}), 1),
        (message(extra=1), 1),
        (message(extra=1, params={}), 1),
        (message(extra=1, id=LEFT_OUT), None),
        (message(result={}), 1),
        (message(error={"code": 1, "message": ""}), 1),
        (message(id=2**53, extra=1), None),
    ],
)
def test_malformed_messages_are_refused(value: object, request_id: int | str | None) -> None:
    """What is no JSON-RPC message gets 400 and -32600, with the id where method and id could be read."""
    refusal = frame(value)
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code, refusal.id) == (400, INVALID_REQUEST, request_id)
    assert refusal.data == {"reason": "invalid_message"}
    assert readable_id(value) == request_id


@pytest.mark.parametrize(
    "value",
    [
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": "", "result": {"a": 1}},
        {"jsonrpc": "2.0", "id": 0, "error": {"code": -1, "message": "no"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}},
        {"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}},
    ],
)
def test_posted_responses_are_framed(value: dict[str, Any]) -> None:
    """A result or an error under the id of a request is a response; an error may lack the id it could not read."""
    assert frame(value) == PostedResponse(value.get("id"), value)


@pytest.mark.parametrize(
    "value",
    [
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "result": {}},
        {"jsonrpc": "2.0", "id": None, "result": {}},
        {"jsonrpc": "2.0", "id": 1.0, "result": {}},
        {"jsonrpc": "2.0", "id": True, "error": {"code": 1, "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "method": None},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "extra": 1},
        {"jsonrpc": "2.0", "error": {"code": 1, "message": "no"}, "params": {}},
    ],
)
def test_malformed_responses_are_refused(value: dict[str, Any]) -> None:
    """A response has exactly one of result and error, a proper id and nothing else."""
    refusal = frame(value)
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code, refusal.id) == (400, INVALID_REQUEST, None)


def test_text_is_what_can_be_sent() -> None:
    """Strings are text unless they hold a lone surrogate; nothing else is."""
    assert is_text("")
    assert is_text("é\U0001f600")
    for value in (SURROGATE, f"a{SURROGATE}b", b"a", 1, None, ["a"]):
        assert not is_text(value)
