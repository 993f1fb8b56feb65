"""From ``module:attribute`` or ``file.py:attribute`` to a handler, or to one paragraph that says what is wrong."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from twolane.asgi import StatelessMcpHandler, create_mcp_handler
from twolane.server.server import McpServer

__all__ = ["DEFAULT_ATTRIBUTE", "CliError", "load_handler"]

#: What is served when TARGET names a file or a module only.
DEFAULT_ATTRIBUTE = "create_server"


class CliError(Exception):
    """What the operator reads instead of a traceback."""


def load_handler(target: str, options: Mapping[str, Any], flags: Mapping[str, str]) -> StatelessMcpHandler:
    """
    Import *target* and build its handler.

    Args:
        target: ``module:attribute`` or ``file.py:attribute``, relative to the working directory. The attribute is a
            factory or a handler that was built already.
        options: the options of ``create_mcp_handler`` that the operator gave.
        flags: the command-line flag of each option, for errors.

    Raises:
        CliError: there is no such target, it fails on import, or it is nothing that can be served.
    """
    place, name = _split(target)
    module = _import_file(place) if place.endswith(".py") else _import_module(place)
    found = _attribute(module, name, place)
    if isinstance(found, StatelessMcpHandler):
        if options:
            given = ", ".join(sorted(flags[option] for option in options))
            raise CliError(
                f"{name} in {place} is a handler already, so {given} cannot change it: pass such options to "
                f"create_mcp_handler in {place}, or serve the factory instead of the handler."
            )
        return found
    if not callable(found) and not hasattr(found, "dispatch"):
        hint = _hint(module)
        raise CliError(f"{name} in {place} is {_kind(found)}, not a function that builds a server{hint}.")
    try:
        return create_mcp_handler(found, **options)
    except (TypeError, ValueError) as exc:
        raise CliError(f"{name} in {place} cannot be served: {exc}.") from None


def _split(target: str) -> tuple[str, str]:
    place, colon, name = target.rpartition(":")
    # A colon may also belong to a Windows drive.
    if not colon or name.endswith(".py") or "/" in name or "\\" in name:
        place, name = target, DEFAULT_ATTRIBUTE
    if not place or not all(part.isidentifier() for part in name.split(".")):
        raise CliError(
            f"TARGET is module:function or file.py:function, and {target!r} is neither; "
            "for example: twolane serve hello.py:create_server"
        )
    return place, name


def _import_file(place: str) -> ModuleType:
    path = Path(place).resolve()
    if not path.is_file():
        raise CliError(f"There is no file {place} in {Path.cwd()}.")
    # As for `python file.py`: what lies beside the file can be imported.
    _search_first(path.parent)
    taken = path.stem in sys.modules or path.stem in sys.stdlib_module_names or not path.stem.isidentifier()
    name = f"_twolane_target_{path.stem}" if taken else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CliError(f"{place} cannot be imported as Python.")
    module = importlib.util.module_from_spec(spec)
    # Type hints are resolved through here.
    sys.modules[name] = module
    try:
        with _Importing(place):
            spec.loader.exec_module(module)
    except CliError:
        sys.modules.pop(name, None)
        raise
    return module


def _import_module(place: str) -> ModuleType:
    if not all(part.isidentifier() for part in place.split(".")):
        guess = next(
            (f"{place}{ending}" for ending in (".py", "/__init__.py") if Path(f"{place}{ending}").is_file()), ""
        )
        hint = f"; did you mean {guess}?" if guess else "."
        raise CliError(f"{place!r} is neither the name of a module nor a file that ends in .py{hint}")
    _search_first(Path.cwd())
    importlib.invalidate_caches()
    with _Importing(place):
        return importlib.import_module(place)


def _search_first(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


class _Importing:
    """Turns a failed import into an error: a short one if the target is missing, the user's own lines if it broke."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if exc is None or isinstance(exc, KeyboardInterrupt):
            return
        place = self._place
        if isinstance(exc, ModuleNotFoundError) and exc.name and f"{place}.".startswith(f"{exc.name}."):
            file = Path(f"{exc.name.replace('.', '/')}.py")
            hint = f" There is a file {file}: is one of its folders no package?" if file.is_file() else ""
            raise CliError(f"There is no module {exc.name} in {Path.cwd()} or in the environment.{hint}") from None
        if isinstance(exc, SystemExit):
            raise CliError(
                f"{place} ends the process when it is imported; keep that behind: if __name__ == '__main__'."
            ) from None
        raise CliError(f"{place} fails when it is imported:\n\n{''.join(_own_lines(exc)).rstrip()}") from None


def _own_lines(exc: BaseException) -> Iterator[str]:
    """Format *exc* without the frames of this command and of the import system."""
    report = traceback.TracebackException.from_exception(exc)
    here = str(Path(__file__).parent)
    chain: traceback.TracebackException | None = report
    while chain is not None:
        frames = [f for f in chain.stack if not f.filename.startswith((here, "<frozen importlib"))]
        importlib_file = importlib.__file__ or ""
        chain.stack = traceback.StackSummary.from_list([f for f in frames if f.filename != importlib_file])
        chain = chain.__cause__ or chain.__context__
    return report.format()


def _attribute(module: ModuleType, name: str, place: str) -> Any:
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise CliError(f"{place} has no {name}{_hint(module)}.") from None
    return found


def _hint(module: ModuleType) -> str:
    """Name what in *module* could be served."""
    names = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(value, StatelessMcpHandler)
            or (inspect.isfunction(value) and value.__module__ == module.__name__)
            or isinstance(value, McpServer)  # Not servable, but naming it leads to the sentence that says why.
        )
    ]
    return f"; it has {', '.join(names)}" if names else " and nothing else that could be served"


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
