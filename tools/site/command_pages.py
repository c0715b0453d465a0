"""The command line as a page: every command with its arguments and options, read from the Typer application."""

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from neuclust.cli.app import app
from tools.site.tables import code, table


def commands() -> dict[str, Any]:
    """Every command by the words that call it: `run`, `data prepare movielens`."""
    return dict(_walk(get_command(app), ()))


def _walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(words), command
        return
    for name, each in inner.items():
        yield from _walk(each, (*words, name))


def page() -> str:
    """One section per command."""
    return "\n\n".join(section(words, command) for words, command in commands().items())


def section(words: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join(["neuclust", words, *(_placed(each) for each in arguments), *(["[OPTIONS]"] if options else [])])
    parts = [f"({anchor(words)})=\n## `neuclust {words}`", command.help or "", f"```text\n{usage}\n```"]
    rows = [(code(_placed(each)), said(each), "") for each in arguments]
    rows += [(", ".join(map(code, _names(each))), said(each), code(default(each))) for each in options]
    if rows:
        parts.append(table(("option", "meaning", "default"), rows))
    return "\n\n".join(parts)


def anchor(words: str) -> str:
    return f"neuclust-{words.replace(' ', '-')}"


def said(parameter: Any) -> str:
    """The help, with `<` written out: it is no HTML."""
    required = " Required." if parameter.required and parameter.param_type_name == "option" else ""
    text = parameter.help or ""
    again = " May be repeated." if parameter.multiple and not re.search("repeated|several times", text) else ""
    return text.replace("<", r"\<").replace("*", r"\*") + required + again


def default(parameter: Any) -> str:
    value = parameter.default() if callable(parameter.default) else parameter.default
    if value is None or value is False or value is True or value in ((), []) or parameter.required:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _placed(parameter: Any) -> str:
    name = parameter.metavar or (parameter.name or "").upper()
    return name if parameter.required else f"[{name.strip('[]')}]"


def _names(parameter: Any) -> list[str]:
    value = "" if parameter.is_flag else f" {parameter.metavar or (parameter.name or '').upper()}"
    return [f"{name}{value}" for name in parameter.opts] + list(parameter.secondary_opts)
