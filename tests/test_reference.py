"""Every setting of every policy has a meaning, and the list of them is true."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

import neuclust
from neuclust.configuration import entries, from_mapping, with_setting
from neuclust.presets.listing import LISTED
from neuclust.presets.meanings import MEANINGS, auto, models, policies, slates
from neuclust.reference import groups, settings
from neuclust.registry import POLICIES, REGISTRY, policy_config

PRESETS = [f"{name}:{preset}" for name, spec in POLICIES.items() for preset in spec.presets]


def kinds(config: Any) -> dict[str, type]:
    """Classes of a configuration and of all groups in it, by name."""
    found = {type(config).__name__: type(config)}
    for entry in fields(config):
        if is_dataclass(getattr(config, entry.name)):
            found |= kinds(getattr(config, entry.name))
    return found


KINDS = {
    name: kind for spec in POLICIES.values() for config in spec.presets.values() for name, kind in kinds(config).items()
}


def test_every_field_of_every_configuration_has_a_meaning_and_no_meaning_is_of_a_field_that_is_gone() -> None:
    wanted = {name: [entry.name for entry in fields(kind)] for name, kind in KINDS.items() if fields(kind)}
    assert {name: list(of) for name, of in MEANINGS.items()} == {name: wanted.get(name) for name in MEANINGS}
    assert set(wanted) == set(MEANINGS)
    assert sum(map(len, wanted.values())) >= 250
    parts = (auto.AUTO, models.MODELS, policies.POLICIES, slates.SLATES)
    assert sum(map(len, parts)) == len(MEANINGS)  # no class is explained twice


@pytest.mark.parametrize("policy", PRESETS)
def test_the_list_has_every_setting_with_its_value_and_a_sentence(policy: str) -> None:
    name, _, preset = policy.partition(":")
    config, listed = policy_config(name, preset), settings(policy)
    assert [each.name for each in listed] == list(entries(config))
    for each in listed:
        assert each.meaning.endswith(".")
        assert each.meaning[0].isupper() or each.meaning.split()[0].rstrip(":;,") in FIRST_WORDS
        if each.type == "a group of settings or none" or each.name == "constraints.categories":
            continue
        assert with_setting(config, each.name, each.default) == config  # what is shown is what can be given
    assert all(meaning.endswith(".") for meaning in groups(policy).values())


FIRST_WORDS = {"auto", "c", "fixed", "gd", "ts", "z", "α", "γ", "δ", "ζ", "λ", "ν", "ρ", "ω"}


def test_types_and_ranges_are_those_of_the_configuration() -> None:
    listed = {each.name: each for each in settings("neuclust")}
    width, rho, tie = listed["arms.network.width"], listed["arms.encoder.rho"], listed["tie"]
    assert (width.type, width.default, width.range) == ("a whole number", "40", "of at least 1")
    assert width.takes == "a whole number of at least 1"
    assert (rho.type, rho.default, rho.takes) == ("a finite number or none", "none", "a finite number above 0 or none")
    assert (tie.type, tie.range) == ("one of id, random", "")
    assert groups("neuclust")["arms.network"] == "The shape and the start of the arm network."


def test_a_list_that_waits_for_no_torch_is_the_list() -> None:
    shown = [(each.name, each.summary, each.presets) for each in LISTED]
    assert shown == [(spec.name, spec.summary, tuple(spec.presets)) for spec in POLICIES.values()]


@dataclass(frozen=True)
class OutsideConfig:
    courage: float = field(default=0.5, metadata={"meaning": "How much it dares."})
    silent: int = 3


class Outside:
    """A policy of somebody else."""

    def __init__(self, config: OutsideConfig, dim: int, slate_size: int, seed: int) -> None: ...

    select = update = state_dict = load_state_dict = save = from_mapping


def test_a_policy_from_outside_explains_its_settings_in_their_metadata() -> None:
    neuclust.register_policy("outside-explained", Outside)
    try:
        courage, silent = settings("outside-explained")
    finally:
        del REGISTRY.registered["outside-explained"]
    assert (courage.name, courage.type, courage.default, courage.meaning) == (
        "courage", "a finite number", "0.5", "How much it dares."
    )  # fmt: skip
    assert silent.meaning == ""


@pytest.mark.parametrize("policy", [spec.name for spec in LISTED])
def test_every_policy_is_explained_in_80_columns(policy: str, call: Command) -> None:
    """Fails when a line is longer than a terminal, or a setting, its value, what it takes or its meaning is missing."""
    done = call("policies", policy, env={"COLUMNS": "80"})
    assert (done.code, done.err) == (0, "")
    blocks = [block.split("\n    ") for block in re.split(r"\n(?! )", done.out.rstrip("\n")) if block]
    assert [block[0] for block in blocks] == [f"{each.name} = {each.default}" for each in settings(policy)]
    for block, each in zip(blocks, settings(policy), strict=True):
        assert " ".join(block[1:]) == f"{each.takes} {each.meaning}"
        assert max(map(len, block[1:])) <= 76


def test_the_lists_as_json(call: Command, tmp_path: Path) -> None:
    found = json.loads(call("policies", "linucb", "--json", "-").out)
    assert [tuple(row.values()) for row in found] == [
        (each.name, each.default, each.takes, each.meaning) for each in settings("linucb")
    ]
    assert call("policies", "--json", tmp_path / "all.json").code == 0
    listed = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert [row["policy"] for row in listed] == [each.name for each in LISTED]
    assert set(listed[0]) == {"policy", "what it does", "presets"}


def test_the_command_prints_the_same(command: Command) -> None:
    """Words may be broken over lines, at any width."""
    done = command("policies", "neuclust-across:found-clusters")
    shown = "".join(done.out.split())
    assert done.code == 0
    for each in settings("neuclust-across:found-clusters"):
        assert each.name in done.out
        assert each.meaning.split()[0] in shown
    assert "Number of clusters M, where choose is fixed." in " ".join(done.out.split())
