"""Titles, descriptions, icons, annotations and ``_meta``: checked at registration, put on the wire in lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from twolane.protocol.message import EncodeError, encode

__all__ = [
    "annotations_wire",
    "check_common",
    "check_icons",
    "check_text",
    "common_wire",
    "icons_wire",
    "is_model",
    "plain",
    "resource_annotations",
    "tool_annotations",
    "wire",
]

_TOOL_ANNOTATIONS: dict[str, type | tuple[type, ...]] = {
    "title": str,
    "readOnlyHint": bool,
    "destructiveHint": bool,
    "idempotentHint": bool,
    "openWorldHint": bool,
}
_RESOURCE_ANNOTATIONS: dict[str, type | tuple[type, ...]] = {
    "audience": (list, tuple),
    "priority": (int, float),
    "lastModified": str,
}
_ICON: dict[str, type | tuple[type, ...]] = {
    "src": str,
    "mimeType": str,
    "sizes": (list, tuple),
    "theme": str,
}


def is_model(value: object) -> bool:
    """Tell whether *value* is a pydantic model."""
    from pydantic import BaseModel

    return isinstance(value, BaseModel)


def wire(value: Any) -> dict[str, Any]:
    """Return a pydantic model or a mapping as it goes on the wire."""
    if isinstance(value, Mapping):
        return dict(value)
    dumped: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped


def plain(value: Any) -> Any:
    """Return *value*, a pydantic model as it goes on the wire."""
    return wire(value) if is_model(value) else value


def check_text(value: object, what: str) -> None:
    """Raise TypeError unless *value* is a string or None."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}")


def check_common(options: Mapping[str, Any]) -> None:
    """
    Check the options that tools, prompts and resources share.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an icon is not https: or data:, or ``_meta`` has no JSON form.
    """
    check_text(options.get("title"), "title")
    check_text(options.get("description"), "description")
    icons = options.get("icons")
    if icons is not None:
        check_icons(icons)
    meta = options.get("meta")
    if meta is not None:
        if not isinstance(meta, Mapping):
            raise TypeError(f"meta must be a mapping, not {type(meta).__name__}")
        try:
            encode(dict(meta))
        except EncodeError as exc:
            raise ValueError(f"meta has no JSON form: {exc}") from None


def check_icons(icons: Iterable[Any]) -> None:
    """Refuse icons that clients must not load: only ``https:`` and ``data:`` URIs pass (S-110)."""
    if isinstance(icons, str | Mapping):
        raise TypeError("icons must be a list of mcp_types.Icon or dicts")
    for icon in icons:
        if isinstance(icon, Mapping):
            _check_mapping(icon, _ICON, "icon")
            source = icon.get("src")
        else:
            source = getattr(icon, "src", None)
        if not isinstance(source, str):
            raise TypeError(f'an icon is an mcp_types.Icon or a dict with "src", not {icon!r}')
        if not source.lower().startswith(("https:", "data:")):
            raise ValueError(f"icon {source[:100]!r}: only https: and data: URIs are allowed")


def icons_wire(icons: Iterable[Any]) -> list[dict[str, Any]]:
    """Return checked icons as they go on the wire."""
    return [_camel(wire(icon), _ICON) for icon in icons]


def tool_annotations(annotations: Any) -> None:
    """Raise unless *annotations* are an ``mcp_types.ToolAnnotations`` or a dict of its fields."""
    _check_annotations(annotations, _TOOL_ANNOTATIONS, "ToolAnnotations")


def resource_annotations(annotations: Any) -> None:
    """Raise unless *annotations* are an ``mcp_types.Annotations`` or a dict of its fields."""
    _check_annotations(annotations, _RESOURCE_ANNOTATIONS, "Annotations")
    if isinstance(annotations, Mapping):
        priority = annotations.get("priority")
        if priority is not None and not 0 <= priority <= 1:
            raise ValueError(f"annotations: priority lies between 0 and 1, not {priority!r}")
        for role in annotations.get("audience") or ():
            if role not in ("user", "assistant"):
                raise ValueError(f'annotations: audience holds "user" and "assistant", not {role!r}')


def annotations_wire(annotations: Any) -> dict[str, Any]:
    """Return checked annotations as they go on the wire."""
    return _camel(wire(annotations), {**_TOOL_ANNOTATIONS, **_RESOURCE_ANNOTATIONS})


def common_wire(descriptor: dict[str, Any], options: Mapping[str, Any]) -> None:
    """Add ``annotations``, ``icons`` and ``_meta`` to *descriptor* where *options* have them."""
    if options.get("annotations") is not None:
        descriptor["annotations"] = annotations_wire(options["annotations"])
    if options.get("icons") is not None:
        descriptor["icons"] = icons_wire(options["icons"])
    if options.get("meta") is not None:
        descriptor["_meta"] = dict(options["meta"])


def _check_annotations(annotations: Any, fields: dict[str, type | tuple[type, ...]], name: str) -> None:
    if isinstance(annotations, Mapping):
        _check_mapping(annotations, fields, "annotations")
    elif not is_model(annotations):
        raise TypeError(f"annotations must be an mcp_types.{name} or a dict, not {type(annotations).__name__}")


def _check_mapping(value: Mapping[str, Any], fields: dict[str, type | tuple[type, ...]], what: str) -> None:
    for key, item in _camel(value, fields).items():
        if key not in fields:
            raise ValueError(f"{what}: unknown field {key!r}; use {', '.join(fields)}")
        kind = fields[key]
        if item is not None and (not isinstance(item, kind) or (isinstance(item, bool) and kind is not bool)):
            raise ValueError(f"{what}: {key} cannot be {item!r}")


def _camel(value: Mapping[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return *value* with the fields that were written in snake case renamed, and those that are None left out."""
    renamed = {}
    for key, item in value.items():
        if item is not None:
            head, *tail = str(key).split("_")
            camel = head + "".join(word.capitalize() for word in tail)
            renamed[camel if camel in fields else key] = item
    return renamed
