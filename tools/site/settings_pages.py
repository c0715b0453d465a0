"""Every setting of every policy as a page: its value, what it may be and what it means, and what presets change."""

from neuclust.reference import settings
from neuclust.registry import POLICIES
from tools.site.tables import code, table


def page() -> str:
    """One section per policy."""
    return "\n\n".join(section(name) for name in POLICIES)


def section(name: str) -> str:
    """What the policy does, its settings, and what its presets change."""
    spec = POLICIES[name]
    rows = [(code(each.name), code(each.default), each.takes, plain(each.meaning)) for each in settings(name)]
    parts = [f"(policy-{name})=\n## `{name}`", f"{plain(spec.summary)}."]
    parts.append(table(("setting", "default", "takes", "meaning"), rows) if rows else "It has no settings.")
    others = [preset for preset in spec.presets if preset != "default"]
    if others:
        parts.append(table(("preset", "what it changes"), [(code(each), changes(name, each)) for each in others]))
    return "\n\n".join(parts)


def changes(name: str, preset: str) -> str:
    """Settings of a preset that differ from the default one, as `--set` takes them."""
    default = {each.name: each.default for each in settings(name)}
    changed = [each for each in settings(f"{name}:{preset}") if default.get(each.name) != each.default]
    return ", ".join(code(f"{each.name}={each.default}") for each in changed) or "nothing"


def plain(text: str) -> str:
    """A text without markup: stars and angles are characters."""
    return text.replace("<", r"\<").replace("*", r"\*")
