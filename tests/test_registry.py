"""Policies and environments by name: building without an environment, registering from outside, and refusals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from small_problems import play, small_environment

import neuclust
from neuclust import extensions, registry
from neuclust.core import Environment
from neuclust.environments import catalogue
from neuclust.environments.problem import ProblemSpec
from neuclust.errors import ConfigError, SaveError
from neuclust.policies.reference import ReferenceConfig, Uniform
from neuclust.registry import POLICIES, build_policy, load_policy, policy_spec, split_name

ORACLES = [name for name, spec in POLICIES.items() if spec.knows_truth]


@dataclass(frozen=True, slots=True)
class TamerConfig:
    strength: float = 1.0


class Tamer(Uniform):
    """Uniform under another name. A second sentence."""

    name = "tamer"

    def __init__(self, config: TamerConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        super().__init__(ReferenceConfig(), dim, slate_size, seed)
        self.settings = config


def circus(spec: ProblemSpec) -> Environment:
    """A small problem."""
    return small_environment(slate_size=spec.slate_size, horizon=spec.horizon, seed=spec.seed)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registrations of one test do not reach another."""
    for known in (registry.REGISTRY, catalogue.REGISTRY):
        monkeypatch.setattr(known, "registered", {})
        monkeypatch.setattr(known, "_read", True)


def announce(monkeypatch: pytest.MonkeyPatch, **targets: str) -> None:
    """As if an installed package had these policies among its entry points."""
    points = EntryPoints(EntryPoint(name, target, "neuclust.policies") for name, target in targets.items())
    monkeypatch.setattr(extensions, "entry_points", lambda group: points.select(group=group))
    monkeypatch.setattr(registry.REGISTRY, "_read", False)


def test_what_knows_the_truth_and_what_clusters_is_told_by_the_registry() -> None:
    assert set(ORACLES) == {"oracle", "static", "cluster-oracle"}
    assert {name for name, spec in POLICIES.items() if spec.clusters} == {
        "neuclust", "neuclust-online", "neuclust-across", "cluster-oracle",
    }  # fmt: skip
    assert registry.knows_truth("oracle")
    assert not any(map(registry.knows_truth, ("auto", "nothing of that name", "no.module:Class")))


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ORACLES])
def test_a_policy_is_built_without_an_environment(name: str) -> None:
    environment = small_environment(n=60, centres=2, horizon=2)
    overrides = {"clustering.count": "2"} if POLICIES[name].clusters else {}
    policy = build_policy(name, dim=environment.dim, slate_size=3, seed=1, overrides=overrides)
    assert [len(set(slate)) for slate in play(policy, environment, range(1, 3))] == [3, 3]


@pytest.mark.parametrize("name", ORACLES)
def test_a_yardstick_says_what_it_lacks(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: expected an environment that tells the truth .*got none"):
        build_policy(name, dim=4, slate_size=2)


def test_the_name_may_carry_the_preset() -> None:
    linear: Any = build_policy("auto:linear", dim=4, slate_size=2)
    assert linear.config == POLICIES["auto"].presets["linear"]
    assert split_name("neuclust") == ("neuclust", "")
    assert split_name("package.module:Class") == ("package.module:Class", "")
    assert split_name("package.module:Class:fast") == ("package.module:Class", "fast")
    with pytest.raises(ConfigError, match="one preset"):
        build_policy("auto:linear", preset="max", dim=4, slate_size=2)
    for wrong in ({}, {"dim": 3}, {"dim": 3, "slate_size": 2, "environment": small_environment()}):
        arguments: Any = wrong
        with pytest.raises(ConfigError, match="expected environment=, or dim= and slate_size="):
            build_policy("linucb", **arguments)


def test_a_registered_policy_is_built_saved_and_loaded(tmp_path: Path) -> None:
    neuclust.register_policy("tame", Tamer, presets={"strong": TamerConfig(9.0)})
    spec = policy_spec("tame")
    assert (spec.summary, list(spec.presets)) == (
        "Uniform under another name. A second sentence",
        ["default", "strong"],
    )
    policy: Any = build_policy("tame:strong", environment=small_environment(), overrides={"strength": "2"})
    assert policy.settings == TamerConfig(2.0)
    assert "tame" in registry.policies()
    assert "tame" not in POLICIES
    policy.config = TamerConfig(2.0)
    policy.save(tmp_path)
    assert isinstance(load_policy(tmp_path), Tamer)
    registry.REGISTRY.registered.clear()
    with pytest.raises(SaveError, match=r"no policy 'tamer'.*registered before"):
        load_policy(tmp_path)


def test_registering_is_also_a_decorator_and_may_be_repeated() -> None:
    assert neuclust.register_policy("tame", summary="a summary")(Tamer) is Tamer
    assert neuclust.register_policy("tame")(Tamer) is Tamer
    assert neuclust.register_environment("circus")(circus) is circus
    environment = neuclust.build_environment("circus", slate_size=4, horizon=7)
    assert (environment.slate_size, environment.horizon) == (4, 7)
    assert catalogue.environments()["circus"].summary == "A small problem"


def test_registrations_travel_as_data() -> None:
    neuclust.register_policy("tame", Tamer, presets={"strong": TamerConfig(9.0)}, summary="a summary")
    neuclust.register_environment("circus", circus)
    sent = registry.outside()
    assert [one.target for one in sent] == [f"{__name__}:Tamer", f"{__name__}:circus"]
    before = policy_spec("tame")
    for known in (registry.REGISTRY, catalogue.REGISTRY):
        known.registered.clear()
    registry.adopt(sent)
    registry.adopt(sent)
    assert policy_spec("tame") == before
    assert catalogue.environment_spec("circus").builder is circus
    assert registry.source_hash("tame") == registry.source_hash(f"{__name__}:Tamer") is not None
    assert registry.source_hash("clusters") is registry.source_hash("linucb") is registry.source_hash("other") is None


def test_what_no_other_process_can_find_is_refused() -> None:
    class Hidden(Tamer):
        name = "hidden"

    neuclust.register_policy("hidden", Hidden, config=TamerConfig)
    assert registry.outside(names=["tame"]) == ()
    with pytest.raises(ConfigError, match=r"Hidden: expected a class or function at the top of an importable module"):
        registry.outside()


def test_a_class_is_named_by_its_place() -> None:
    assert policy_spec(f"{__name__}:Tamer").policy is Tamer
    assert catalogue.environment_spec(f"{__name__}:circus").builder is circus
    for wrong, says in {
        "no.such.module:Class": "can be imported",
        "neuclust.core:Nothing": "package.module:attribute",
        "neuclust.core:Round": "without select, update",
    }.items():
        with pytest.raises(ConfigError, match=says):
            policy_spec(wrong)
    with pytest.raises(ConfigError, match="builds an environment"):
        catalogue.environment_spec("neuclust.core:LARGEST")


class Speechless:
    def __init__(self, config: TamerConfig) -> None: ...


class Thawed(Tamer):
    def __init__(self, config: dict[str, float], dim: int, slate_size: int, seed: int = 0) -> None: ...


@pytest.mark.parametrize(
    ("name", "policy", "options", "says"),
    [
        ("linucb", Tamer, {}, "'linucb' names neuclust.policies.linear:SharedLinUCB already"),
        ("a name", Tamer, {}, "letters, digits"),
        ("a.b", Tamer, {}, "letters, digits"),
        ("mute", Speechless, {}, "without select, update, state_dict, load_state_dict, save"),
        ("thawed", Thawed, {}, "frozen dataclass"),
        ("tame", print, {}, "policy class"),
        ("tame", Tamer, {"presets": {"odd": 3}}, "presets of TamerConfig, got 3 as 'odd'"),
        ("tame", Tamer, {"needs": ("meens",)}, "no part 'meens' of a problem; did you mean means"),
        ("uniform-2", type("Other", (Tamer,), {"name": "uniform"}), {}, "`name` of its own"),
    ],
)
def test_refusals(name: str, policy: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        neuclust.register_policy(name, policy, **options)
    assert says in str(refusal.value)
    assert not registry.REGISTRY.registered


def test_entry_points_are_read_when_a_name_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch, tame=f"{__name__}:Tamer")
    assert policy_spec("linucb") is POLICIES["linucb"]
    assert not registry.REGISTRY.registered
    assert policy_spec("tame").policy is Tamer
    with pytest.raises(ConfigError, match="no policy 'tamed'; did you mean tame"):
        policy_spec("tamed")


def test_a_broken_entry_point_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch, broken="no.such.module:Class", linucb=f"{__name__}:Tamer", tame=f"{__name__}:Tamer")
    with pytest.warns(UserWarning, match="cannot be used") as said:
        assert "tame" in registry.policies()
    assert len(said) == 2
    assert registry.policies()["linucb"] is POLICIES["linucb"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.policies()  # said once


def test_the_names_of_presets_py_are_still_found() -> None:
    import neuclust.presets as old

    with pytest.warns(DeprecationWarning, match=r"neuclust\.registry\.build_policy"):
        assert old.build_policy is build_policy
    with pytest.raises(AttributeError):
        _ = old.nothing
