"""Every public name, every method of a public class and every setting of every policy stands on a reference page."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest
from site_pages import DOCS

import neuclust
from neuclust.configuration import keys
from neuclust.reference import settings
from neuclust.registry import POLICIES, policy_config
from tools.site import api_pages, command_pages, http_pages, made, settings_pages


def methods(kind: type) -> list[str]:
    """Public methods and properties that a class defines itself or has from one of ours."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("neuclust")]
    return [
        name for base in ours for name, found in vars(base).items()
        if not name.startswith("_") and (inspect.isfunction(found) or isinstance(found, property | classmethod))
    ]  # fmt: skip


def test_every_public_name_of_the_package_is_in_the_reference() -> None:
    """Fails when a name is added to `neuclust.__all__` and to no page."""
    names = [name for name in neuclust.__all__ if not name.startswith("_")]
    on_pages = {full.rpartition(".")[2] for full in api_pages.documented()}
    assert len(names) >= 20
    assert [name for name in names if name not in on_pages] == []


def test_every_name_of_the_reference_exists_and_has_a_text() -> None:
    """Fails when a page names what is gone, or what has no docstring and would be left out."""
    counted = 0
    for parts in api_pages.PAGES.values():
        for part in parts:
            for name in part.names:
                found: Any = getattr(importlib.import_module(part.module), name)
                assert inspect.getdoc(found), f"{part.module}.{name}"
                if isinstance(found, type) and part.members:
                    silent = [each for each in methods(found) if not inspect.getdoc(getattr(found, each))]
                    assert silent == [], f"{part.module}.{name}"
                    counted += len(methods(found))
                counted += 1
    assert counted > 150


@pytest.mark.parametrize("policy", list(POLICIES))
def test_every_setting_of_a_policy_is_on_the_page_with_its_value_and_meaning(policy: str) -> None:
    """Fails when a setting, a group of settings or a preset has no row in the policy's section."""
    section = settings_pages.section(policy)
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    shown = {row[0].removeprefix("| ").strip("`"): row for row in rows}
    listed = settings(policy)
    wanted = {each.name for each in listed}
    assert wanted <= set(shown)
    assert set(keys(policy_config(policy, "default"))) <= wanted | {name.rpartition(".")[0] for name in wanted}
    for each in listed:
        assert each.default in shown[each.name][1]
        assert each.meaning.split()[0].strip("\\*<") in shown[each.name][2]
    assert set(POLICIES[policy].presets) - {"default"} <= set(shown)


def test_the_page_of_settings_counts_them() -> None:
    """Fails when a policy is left out of the page."""
    page = settings_pages.page()
    assert sum(len(settings(policy)) for policy in POLICIES) > 700
    for policy in POLICIES:
        assert f"(policy-{policy})=" in page
        assert f"| {len(settings(policy))} |" in page


def test_every_command_and_route_has_a_section() -> None:
    """Fails when a command or a route is not in the reference."""
    commands, routes = command_pages.page(), http_pages.page()
    assert len(command_pages.commands()) > 20
    assert [words for words in command_pages.commands() if f"## `neuclust {words}`" not in commands] == []
    paths = http_pages.document()["paths"]
    asked = [f"{verb.upper()} {path}" for path, operations in paths.items() for verb in operations]
    assert len(asked) > 20
    assert [each for each in asked if f"### `{each}`" not in routes] == []


def test_every_made_part_stands_on_one_page() -> None:
    """Fails when a page asks for a part that nothing makes, or a made part is on no page."""
    asked = [
        each["what"] for page in DOCS.rglob("*.md") for each in made.MARK.finditer(page.read_text(encoding="utf-8"))
    ]
    assert sorted(asked) == sorted(made.MAKERS)
