"""Every setting of every policy as a page: its value, what it may be and what it means, and what presets change."""

from itertools import groupby

from neuclust.reference import Setting, groups, settings
from neuclust.registry import POLICIES
from tools.site.tables import code, table


def page() -> str:
    """A list of the policies, then one section per policy."""
    rows = [
        (f"[`{name}`](#policy-{name})", f"{plain(spec.summary)}.", str(len(settings(name))))
        for name, spec in POLICIES.items()
    ]
    listed = table(("policy", "what it does", "settings"), rows)
    return "\n\n".join([listed, *(section(name) for name in POLICIES)])


def section(name: str) -> str:
    """What the policy does, its settings by group, folded away, and what its presets change."""
    spec, listed = POLICIES[name], settings(name)
    parts = [f"(policy-{name})=\n## `{name}`", f"{plain(spec.summary)[:1].upper()}{plain(spec.summary)[1:]}."]
    parts.append(folded(counted(len(listed), "setting"), tables(name, listed)) if listed else "It has no settings.")
    others = [preset for preset in spec.presets if preset != "default"]
    if others:
        rows = [(code(each), changes(name, each)) for each in others]
        parts.append(
            folded(counted(len(others), "preset"), classed("presets", table(("preset", "what it changes"), rows)))
        )
    return "\n\n".join(parts)


def tables(name: str, listed: tuple[Setting, ...]) -> str:
    """One table per group of settings, under the group's name and meaning."""
    meanings, parts = groups(name), []
    for group, members in groupby(listed, key=lambda each: each.name.rpartition(".")[0]):
        if group:
            parts.append(f"**`{group}`** {plain(meanings[group])}")
        rows = [
            (code(each.name), code(each.default), f"{plain(each.meaning)} *{plain(each.takes)}*") for each in members
        ]
        parts.append(classed("settings", table(("setting", "default", "meaning, and what it takes"), rows)))
    return "\n\n".join(parts)


def folded(title: str, text: str) -> str:
    """A part that opens at a click; search and the browser's own find its words."""
    return f":::::{{dropdown}} {title}\n{text}\n:::::"


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def classed(name: str, text: str) -> str:
    """A table that the style sheet knows."""
    return f"::::{{table}}\n:class: {name}\n\n{text}\n::::"


def changes(name: str, preset: str) -> str:
    """Settings of a preset that differ from the default one, as `--set` takes them."""
    default = {each.name: each.default for each in settings(name)}
    changed = [each for each in settings(f"{name}:{preset}") if default.get(each.name) != each.default]
    return ", ".join(code(f"{each.name}={each.default}") for each in changed) or "nothing"


def plain(text: str) -> str:
    """A text without markup: stars and angles are characters."""
    return text.replace("<", r"\<").replace("*", r"\*")
