"""
Input rounds: what a handler asks of the client, and what comes back (basic/patterns/mrtr).

A handler that needs something from the user or from the client returns ``input_required(...)``. The client answers by
sending the same request again with ``inputResponses``, read here by :func:`accepted_content` and
:func:`input_response`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload
from urllib.parse import urlsplit

from twolane.errors import InvalidParams
from twolane.protocol.forms import form_schema, is_form_content, read_content
from twolane.protocol.sampling import sampling_messages, sampling_params

__all__ = [
    "ELICIT",
    "LIST_ROOTS",
    "SAMPLE",
    "InputRequest",
    "InputRequired",
    "InputResponse",
    "accepted_content",
    "elicit",
    "elicit_url",
    "input_required",
    "input_response",
    "lift_responses",
    "list_roots",
    "required_capability",
    "sample",
    "to_wire",
]

ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
LIST_ROOTS = "roots/list"
_METHODS = (ELICIT, SAMPLE, LIST_ROOTS)
_Content = TypeVar("_Content")
_ACTIONS = ("accept", "decline", "cancel")


@dataclass(frozen=True, slots=True)
class InputRequest:
    """
    One thing to ask of the client. Made by :func:`elicit`, :func:`elicit_url`, :func:`sample`, :func:`list_roots`.

    Args:
        method: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``.
        params: its parameters, in wire form.
    """

    method: str
    params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method not in _METHODS:
            raise ValueError(f"an input request is one of {', '.join(_METHODS)}, not {self.method!r}")


@dataclass(frozen=True, slots=True)
class InputRequired:
    """
    What a handler returns when it cannot finish without input. Made by :func:`input_required`.

    Args:
        requests: what is asked, by key; the answers come back under the same keys.
        state: a JSON value for the next round, sealed on its way through the client; None for no state.
    """

    requests: dict[str, InputRequest]
    state: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        requests: Mapping[Any, Any] = self.requests
        for key, request in requests.items():
            if not isinstance(key, str) or not key:
                raise TypeError("the keys of input requests are strings that are not empty")
            if not isinstance(request, InputRequest):
                raise TypeError(f"{key!r} is not an input request: use elicit, elicit_url, sample or list_roots")
        if not self.requests and self.state is None:
            raise ValueError("input_required needs at least one request or a state (S-112)")


@dataclass(frozen=True, slots=True)
class InputResponse:
    """
    One answer of the client, told apart by ``kind``.

    Args:
        kind: ``missing`` also stands for an answer of no known shape: ask again.
        action: of ``elicit``: ``accept``, ``decline`` or ``cancel``.
        content: of an accepted ``elicit``, unchecked; None for a URL. :func:`accepted_content` checks it.
        message: of ``sample``: ``role``, ``content``, ``model`` and perhaps ``stopReason``.
        roots: of ``roots``: objects with ``uri`` and perhaps ``name``.
    """

    kind: Literal["missing", "elicit", "sample", "roots"]
    action: Literal["accept", "decline", "cancel"] | None = None
    content: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    roots: tuple[dict[str, Any], ...] = ()


def elicit(message: str, schema: Any) -> InputRequest:
    """
    Ask the user to fill in a form (client/elicitation). Never ask for secrets with it: use :func:`elicit_url`.

    Args:
        message: what the user reads.
        schema: the fields: a pydantic model, a dataclass, a TypedDict or a JSON Schema dict. A form is flat: strings
            (plain, email, uri, date, date-time), numbers, booleans, choices and multiple choices.

    Raises:
        TypeError: the schema has no place in a form; the text names the field.
    """
    return InputRequest(
        ELICIT, {"mode": "form", "message": _text(message, "message"), "requestedSchema": form_schema(schema)}
    )


def elicit_url(message: str, url: str) -> InputRequest:
    """
    Ask the user to open a page, for what must not pass through the client (client/elicitation, "URL mode").

    The URL must hold nothing secret or personal and must not log anybody in: whoever opens it proves there who they
    are (S-122, S-123).

    Args:
        message: what the user reads.
        url: an absolute http or https URL.

    Raises:
        ValueError: the URL is not absolute, of another scheme, or holds a user name or password.
    """
    return InputRequest(ELICIT, {"mode": "url", "message": _text(message, "message"), "url": _checked_url(url)})


def sample(
    messages: str | Sequence[Any],
    *,
    max_tokens: int,
    system_prompt: str | None = None,
    temperature: float | None = None,
    model_preferences: Any = None,
    stop_sequences: Sequence[str] | None = None,
    include_context: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    tools: Sequence[Any] | None = None,
    tool_choice: Any = None,
) -> InputRequest:
    """
    Ask the client's model (client/sampling; deprecated there).

    Args:
        messages: a text, or messages as dicts or ``mcp_types.SamplingMessage``.
        max_tokens: the most tokens to generate.
        system_prompt: instructions for the model.
        temperature: how freely the model answers.
        model_preferences: hints and priorities, a dict or ``mcp_types.ModelPreferences``.
        stop_sequences: texts at which the model stops.
        include_context: ``none``, ``thisServer`` or ``allServers``; the last two are deprecated.
        metadata: passed on to the model's provider.
        tools: tools the model may use, as dicts or ``mcp_types.Tool``.
        tool_choice: ``auto``, ``required`` or ``none``.

    Raises:
        TypeError: a message or parameter has the wrong shape.
        ValueError: tool uses and results do not pair up (S-124), or a value is not allowed.
    """
    params = sampling_params(
        max_tokens=max_tokens,
        system_prompt=system_prompt,
        temperature=temperature,
        model_preferences=model_preferences,
        stop_sequences=stop_sequences,
        include_context=include_context,
        metadata=metadata,
        tools=tools,
        tool_choice=tool_choice,
    )
    return InputRequest(SAMPLE, {"messages": sampling_messages(messages), **params})


def list_roots() -> InputRequest:
    """Ask for the client's roots (client/roots; deprecated there)."""
    return InputRequest(LIST_ROOTS)


def input_required(
    requests: Mapping[str, InputRequest] | None = None, /, *, state: Any = None, **named: InputRequest
) -> InputRequired:
    """
    Return this from a tool, prompt or resource that needs input before it can finish.

    ::

        return input_required(name=elicit("What is your name?", Name), state={"step": 1})

    Nothing waits for the answer and it may never come. Only the current round's answers are in the next request, so
    whatever an earlier round learned travels in *state*.

    Args:
        requests: what to ask, by key, for keys that are no Python names.
        state: a JSON value that comes back in the next round. It is encrypted and bound to this principal, method,
            name and arguments. Alone, without requests, it tells the client to try again.
        **named: what to ask, by key.

    Raises:
        ValueError: there is neither a request nor a state, or a key is given twice.
    """
    merged = dict(requests or {})
    for key, request in named.items():
        if key in merged:
            raise ValueError(f"the input request {key!r} is given twice")
        merged[key] = request
    return InputRequired(merged, state)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is a string, not {type(value).__name__}")
    return value


def _checked_url(url: Any) -> str:
    text = _text(url, "url")
    if any(not "!" <= character <= "~" or character in '\\"<>^`{|}' for character in text):
        raise ValueError("the URL holds a character that must be percent-encoded")
    try:
        parts = urlsplit(text)
        absolute = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        absolute = False
    if not absolute:
        raise ValueError("the URL must be absolute and begin with https:// or http://")
    if "@" in parts.netloc:
        raise ValueError("the URL must not hold a user name or password (S-122)")
    return text


def lift_responses(raw: Any) -> dict[str, dict[str, Any]]:
    """
    Check the ``inputResponses`` of a request (S-119). Answers to unknown keys stay: nobody reads them.

    Raises:
        InvalidParams: it is not an object of bare results.
    """
    if not isinstance(raw, dict):
        raise _malformed("inputResponses must be an object", None)
    for key, answer in raw.items():
        if not isinstance(answer, dict):
            raise _malformed(f"inputResponses: the answer {key!r} must be an object", key)
        if "jsonrpc" in answer or "method" in answer or ("result" in answer and "id" in answer):
            raise _malformed(f"inputResponses: the answer {key!r} must be a bare result, not a JSON-RPC message", key)
    return raw


def _malformed(message: str, key: str | None) -> InvalidParams:
    data = {"reason": "invalid_input_responses"}
    return InvalidParams(message, data if key is None else {**data, "key": key})


def _answer(responses: Any, key: str) -> dict[str, Any]:
    if responses is not None and not isinstance(responses, Mapping):
        responses = responses.input_responses
    answer = (responses or {}).get(key)
    return answer if isinstance(answer, dict) else {}


def input_response(responses: Any, key: str) -> InputResponse:
    """
    Return the answer to one request of the last round. What the client sent never makes this raise.

    Args:
        responses: a ``Context``, or its ``input_responses``.
        key: the key the request had in ``input_required``.
    """
    answer = _answer(responses, key)
    action = answer.get("action")
    if isinstance(action, str) and action in _ACTIONS:
        content = answer.get("content")
        accepted = content if action == "accept" and is_form_content(content) else None
        return InputResponse("elicit", action=action, content=accepted)  # type: ignore[arg-type]
    if answer.get("role") in ("user", "assistant") and isinstance(answer.get("content"), dict | list):
        return InputResponse("sample", message=answer)
    roots = answer.get("roots")
    if isinstance(roots, list) and all(isinstance(root, dict) and isinstance(root.get("uri"), str) for root in roots):
        return InputResponse("roots", roots=tuple(roots))
    return InputResponse("missing")


@overload
def accepted_content(responses: Any, key: str, schema: type[_Content]) -> _Content | None: ...
@overload
def accepted_content(responses: Any, key: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any] | None: ...
@overload
def accepted_content(responses: Any, key: str, schema: Any) -> Any: ...
def accepted_content(responses: Any, key: str, schema: Any = None) -> Any:
    """
    Return what the user accepted in a form, or None: no answer, declined, cancelled, another kind, or invalid.

    A page that was opened (:func:`elicit_url`) has no content, so its acceptance is an empty dict.

    Args:
        responses: a ``Context``, or its ``input_responses``.
        key: the key the request had in ``input_required``.
        schema: what the form was built from. A type gives an instance, a JSON Schema dict a dict of its fields.
            Nothing is coerced.
    """
    answer = _answer(responses, key)
    if answer.get("action") != "accept":
        return None
    return read_content(answer.get("content"), schema)


def required_capability(request: InputRequest, capabilities: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    Return the ClientCapabilities object that *request* needs and *capabilities* lack, or None (S-114).

    Args:
        request: what is to be asked.
        capabilities: what this very request declared.
    """
    if request.method == LIST_ROOTS:
        return None if _declared(capabilities, "roots") is not None else {"roots": {}}
    if request.method == ELICIT:
        mode = request.params.get("mode", "form")
        declared = _declared(capabilities, "elicitation")
        # A declaration that names no mode means forms.
        if declared is not None and (
            _declared(declared, mode) is not None or (mode == "form" and "url" not in declared)
        ):
            return None
        return {"elicitation": {mode: {}}}
    declared = _declared(capabilities, "sampling")
    needed: dict[str, Any] = {}
    if "tools" in request.params or "toolChoice" in request.params:
        needed["tools"] = {}
    if request.params.get("includeContext", "none") != "none":
        needed["context"] = {}
    if declared is None:
        return {"sampling": needed}
    missing = {name: value for name, value in needed.items() if _declared(declared, name) is None}
    return {"sampling": missing} if missing else None


def _declared(capabilities: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    value = capabilities.get(name)
    return value if isinstance(value, Mapping) else None


def to_wire(request: InputRequest, revision: str) -> dict[str, Any]:
    """
    Return the ``{method, params}`` of *request* as *revision* writes it.

    Modes of elicitation came with 2025-11-25; before it every elicitation was a form and said no mode.
    """
    params = dict(request.params)
    if request.method == ELICIT:
        params.setdefault("mode", "form")
        if revision < "2025-11-25":
            del params["mode"]
    return {"method": request.method, "params": params}
