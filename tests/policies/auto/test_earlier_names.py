"""Settings of auto under their earlier names, in overrides and in saves, until 0.3."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from small_problems import play, small_environment

from neuclust.configuration import from_mapping, with_setting
from neuclust.persistence import read_state, write_state
from neuclust.policies.auto.ensemble import EnsembleConfig
from neuclust.policies.auto.policy import AutoConfig
from neuclust.registry import build_policy, load_policy

pytestmark = pytest.mark.filterwarnings("ignore::neuclust.errors.RenamedWarning")


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("claims", "optimistic_slots", "2"), ("team.prior", "ensemble.prior", "3"),
        ("team.options.index.waves", "ensemble.options.index.frequencies", "32"),
        ("index.waves", "ensemble.options.index.frequencies", "32"), ("worth.margin", "marginal_gains.margin", "7"),
        ("team.learners", "ensemble.learners", "linear,net"),
        ("exploring.eps0", "exploring.most", "0.3"),
    ],
)  # fmt: skip
def test_a_setting_is_accepted_under_its_earlier_name(old: str, new: str, value: str) -> None:
    assert with_setting(AutoConfig(), old, value) == with_setting(AutoConfig(), new, value) != AutoConfig()


def earlier(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of a save as version 0.1 wrote them."""
    ensemble = config["ensemble"]
    options = ensemble["options"]
    options["index"]["waves"] = options["index"].pop("frequencies")
    config["exploring"] |= {"budget": 12.0, "rival": 0.5}  # gone since
    renamed = {"ensemble": "team", "optimistic_slots": "claims", "marginal_gains": "worth"}
    return {renamed.get(name, name): value for name, value in config.items()}


def test_settings_saved_under_earlier_names_are_read() -> None:
    config = AutoConfig(EnsembleConfig(learners="linear,index"), optimistic_slots=3)
    assert from_mapping(AutoConfig, earlier(asdict(config))) == config


def test_a_policy_saved_under_earlier_names_plays_on_alike(tmp_path: Path) -> None:
    environment = small_environment()
    policy: Any = build_policy("auto", environment=environment, seed=1)
    play(policy, environment, range(1, 8))
    policy.save(tmp_path / "saved")
    manifest, state = read_state(tmp_path / "saved")
    write_state(tmp_path / "earlier", {**manifest, "config": earlier(manifest["config"])}, state)
    again: Any = load_policy(tmp_path / "earlier")
    assert again.explain() == policy.explain()
    assert play(again, environment, range(8, 12)) == play(policy, environment, range(8, 12))
