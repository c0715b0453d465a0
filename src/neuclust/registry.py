"""Every policy by name, built in or registered from outside, and how to build, load and describe it."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast, get_type_hints

from torch import Tensor

from neuclust.configuration import from_mapping, with_setting
from neuclust.core import Policy
from neuclust.environments import catalogue
from neuclust.errors import ConfigError, NeuclustError, SaveError, StateError, suggestion
from neuclust.extensions import Registration as Registration  # executors import it from here
from neuclust.extensions import Registry, file_hash_of, first_sentence, imported, place_of
from neuclust.models.state import check_shapes
from neuclust.persistence import read_state
from neuclust.presets.catalogue import NEEDS, SHIPPED, TRUTH, PolicySpec

VERBS = ("select", "update", "state_dict", "load_state_dict", "save")
MOST_DIM, MOST_SLATE = 2**22, 2**16  # features per arm and arms per slate: beyond, a manifest is damaged

POLICIES = {spec.name: spec for spec in SHIPPED}


# --- building -----------------------------------------------------------------------------------------------------


def policies() -> dict[str, PolicySpec]:
    """All policies by name: built in, registered, and those of installed packages."""
    return REGISTRY.everything()


def policy_spec(name: str) -> PolicySpec:
    """The policy of this name or of `package.module:Class`, or an error with the closest names."""
    found = REGISTRY.find(name)
    if found is None:
        raise ConfigError(f"no policy {name!r:.100}; {suggestion(name, policies())}", field="policy")
    return found


def split_name(text: str) -> tuple[str, str]:
    """`NAME:PRESET` or `package.module:Class:PRESET` as name and preset, which is empty where none is given."""
    head, _, rest = text.partition(":")
    if "." not in head:
        return head, rest
    attribute, _, preset = rest.partition(":")
    return f"{head}:{attribute}", preset


def policy_config(
    name: str, preset: str = "default", clusters: int | None = None, overrides: Mapping[str, str] | None = None
) -> Any:
    """The frozen configuration of a policy's preset, with settings replaced."""
    spec = policy_spec(name)
    if preset not in spec.presets:
        raise ConfigError(f"{name} has no preset {preset!r:.100}; {suggestion(preset, spec.presets)}", field="preset")
    config = spec.presets[preset]
    if clusters is not None and spec.clusters:
        config = replace(config, clustering=replace(config.clustering, count=clusters))
    for key, text in (overrides or {}).items():
        config = with_setting(config, key, text, name)
    return config


class ProblemArguments(TypedDict, total=False):
    """What a policy is built for: an environment, or its sizes alone."""

    environment: Any  # dim, slate_size and what the policy needs (`NEEDS`)
    dim: int
    slate_size: int


def build_policy(
    name: str,
    *,
    preset: str = "default",
    seed: int = 0,
    clusters: int | None = None,
    overrides: Mapping[str, str] | None = None,
    **problem: Unpack[ProblemArguments],
) -> Policy:
    """A fresh policy for `environment=`, or for `dim=` features and slates of `slate_size=` arms.

    `name` may carry the preset (`auto:linear`). Without an environment, policies that cluster use the first round's
    arms, and oracles cannot be built.
    """
    name, own = split_name(name)
    if own and preset not in ("default", own):
        raise ConfigError(f"expected one preset, got {own!r} in the name and {preset!r}", field="preset")
    spec, config = policy_spec(name), policy_config(name, own or preset, clusters, overrides)
    environment, sizes = problem.get("environment"), problem.keys() - {"environment"}
    if sizes != (set() if environment is not None else {"dim", "slate_size"}):
        raise ConfigError(f"{name}: expected environment=, or dim= and slate_size=, got {', '.join(problem) or 'none'}")
    source: Any = problem if environment is None else {"dim": environment.dim, "slate_size": environment.slate_size}
    given = {need: _given(spec, need, environment) for need in spec.needs}
    if getattr(config, "tracker", None) is None:
        given.pop("counts", None)  # only a tracker starts from them
    return spec.policy(config, source["dim"], source["slate_size"], seed, **given)


def _given(spec: PolicySpec, need: str, environment: Any) -> Any:
    """What the environment offers for a need; None where it may be missing and is."""
    kind, read = NEEDS[need]
    if isinstance(environment, kind):
        return read(environment)
    if need in TRUTH:
        got = "none" if environment is None else "one without"
        raise ConfigError(f"{spec.name}: expected an environment that tells the truth ({TRUTH[need]}), got {got}")
    return None


# --- policies from outside ----------------------------------------------------------------------------------------


def register_policy(
    name: str,
    policy: type | None = None,
    *,
    config: type | None = None,
    presets: Mapping[str, Any] | None = None,
    summary: str = "",
    needs: Sequence[str] = (),
) -> Any:
    """Make a policy class available by name; without a class, a decorator for one. Returns the class.

    The class is built as `policy(config, dim, slate_size, seed, **needs)`, `needs` being names of `NEEDS`. `config` is
    a frozen dataclass, by default the constructor's annotation of `config`; `presets` default to the class's own, with
    `config()` as "default"; `summary` to the first line of the class's docstring.
    """
    if policy is None:
        return lambda found: register_policy(name, found, config=config, presets=presets, summary=summary, needs=needs)
    spec = _spec_of(name, policy, config, presets)
    unknown = [need for need in needs if need not in NEEDS]
    if unknown:
        raise ConfigError(f"{name}: needs: no part {unknown[0]!r} of a problem; {suggestion(unknown[0], NEEDS)}")
    for other in policies().values():
        if other.saved_as == spec.saved_as and place_of(other.policy) != place_of(policy):
            got = f"{spec.saved_as!r}, the name of {place_of(other.policy)}"
            raise ConfigError(f"{name}: expected a `name` of its own, since saves carry it, got {got}")
    REGISTRY.register(replace(spec, summary=summary or spec.summary, needs=tuple(needs) or spec.needs))
    return policy


def _spec_of(
    name: str, policy: Any, config: type | None = None, presets: Mapping[str, Any] | None = None
) -> PolicySpec:
    """The spec of a class from outside, or an error that says what it lacks."""
    if not isinstance(policy, type):
        raise ConfigError(f"{name}: expected a policy class, got {policy!r:.100}")
    missing = [verb for verb in VERBS if not callable(getattr(policy, verb, None))]
    if missing:
        raise ConfigError(f"{name}: expected a policy with {', '.join(VERBS)}, got one without {', '.join(missing)}")
    kind = config or get_type_hints(cast("Any", policy).__init__).get("config")
    if not isinstance(kind, type) or not is_dataclass(kind) or not cast("Any", kind).__dataclass_params__.frozen:
        raise ConfigError(f"{name}: expected a frozen dataclass as configuration, got {kind!r:.100}; give config=")
    known = dict(presets or getattr(policy, "presets", {}))
    wrong = next((preset for preset, value in known.items() if not isinstance(value, kind)), None)
    if wrong is not None:
        raise ConfigError(f"{name}: expected presets of {kind.__name__}, got {known[wrong]!r:.100} as {wrong!r}")
    known = {"default": known["default"] if "default" in known else kind(), **known}
    return PolicySpec(name, first_sentence(policy), policy, known, tuple(getattr(policy, "needs", ())))


REGISTRY = Registry("policy", "neuclust.policies", POLICIES, _spec_of)


def outside(names: Collection[str] | None = None) -> tuple[Registration, ...]:
    """What was registered in this process (or those names of it), for a worker to `adopt`."""
    return (*REGISTRY.registrations(names), *catalogue.REGISTRY.registrations(names))


def adopt(registrations: Sequence[Registration]) -> None:
    """Register in this process what another one had registered."""
    for one in registrations:
        source, options = imported(one.target), dict(one.options)
        if one.kind == "environment":
            catalogue.register_environment(one.name, source, **options)
            continue
        config = imported(options.pop("config"))
        presets = {preset: from_mapping(config, values) for preset, values in options.pop("presets").items()}
        register_policy(one.name, source, config=config, presets=presets, **options)


def source_hash(name: str) -> str | None:
    """SHA-256 of the module of a policy or problem from outside; None for what neuclust ships, whose code is hashed."""
    specs = (REGISTRY.outside(name), catalogue.REGISTRY.outside(name))
    hashes = sorted({file_hash_of(spec.source) for spec in specs if spec is not None})
    return hashlib.sha256("".join(hashes).encode()).hexdigest() if hashes else None


def knows_truth(name: str) -> bool:
    """Whether the policy of this name is given the truth (a yardstick, not a learner); False for unknown names."""
    spec = POLICIES.get(name) or REGISTRY.outside(name)
    return spec is not None and spec.knows_truth


# --- loading --------------------------------------------------------------------------------------------------------


def load_policy(directory: Path, **parts: Any) -> Policy:
    """A policy as `save` left it; `parts` cannot be saved: `clusterer=`, `means=`, `value=`, `catalogue=`."""
    manifest, state = read_state(directory)
    if "recommender" in manifest:
        raise SaveError(f"{directory}: expected a saved policy, got a saved recommender; use Recommender.load")
    making = {name: value for name, value in manifest.items() if name != "format"}
    try:
        return restore_policy(making, state, parts)
    except StateError as error:
        raise SaveError(f"{directory}: {error}") from error


def restore_policy(making: Mapping[str, Any], state: Mapping[str, Tensor], parts: Mapping[str, Any]) -> Policy:
    """The policy of what `persistence.policy_manifest` and `state_dict` gave; anything else is a `StateError`."""
    name = making.get("policy")
    spec = _saved(name, POLICIES.values()) or _saved(name, policies().values())
    if spec is None:
        known = ", ".join(dict.fromkeys(one.saved_as for one in policies().values()))
        advice = "a policy from outside is registered before its save is loaded"
        raise StateError(f"no policy {name!r:.100} in this version; known: {known}; {advice}")
    try:
        return _restored(spec, making, state, parts)
    except (NeuclustError, ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError,
            ValueError) as error:  # fmt: skip
        said = " ".join(str(error).split())
        raise StateError(f"expected a complete save of {name}, got {said or repr(error)}") from error


def _saved(name: object, specs: Iterable[PolicySpec]) -> PolicySpec | None:
    return next((spec for spec in specs if spec.saved_as == name), None)


def _restored(
    spec: PolicySpec, manifest: Mapping[str, Any], state: Mapping[str, Tensor], parts: Mapping[str, Any]
) -> Policy:
    """The policy of a manifest with its state; nothing is made before the tensors say that there is room for it."""
    unknown = set(manifest) ^ {"policy", "config", "dim", "slate_size", "seed"}
    if unknown:
        raise StateError(f"a manifest with unknown or missing entries ({', '.join(sorted(unknown))})")
    dim = _whole(manifest, "dim", 1, MOST_DIM)
    slate_size = _whole(manifest, "slate_size", 1, MOST_SLATE)
    seed = _whole(manifest, "seed", -(2**63), 2**63 - 1)
    config: Any = from_mapping(spec.config, manifest["config"])
    shapes = getattr(spec.policy, "saved_shapes", None)
    if shapes is not None:
        check_shapes(state, shapes(config, dim, slate_size))
    policy = spec.policy(config, dim, slate_size, seed, **parts)
    policy.load_state_dict(state)
    strange = sorted(set(state) - set(policy.state_dict()))
    if strange:
        raise StateError(f"tensors it does not have: {', '.join(strange[:5])}")
    if getattr(policy, "seed", seed) != seed:
        raise StateError(f"seed {seed} in the manifest and another one among the tensors")
    return policy


def _whole(manifest: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = manifest[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise StateError(f"{name} {value!r:.100} where a whole number from {least} to {most} was expected")
    return value
