"""Every policy by name, with its named configurations, and how to build, load and describe them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from neuclust.configuration import from_mapping, with_setting
from neuclust.core import Policy, Round, Slate
from neuclust.errors import ConfigError, NeuclustError, SaveError, StateError, suggestion
from neuclust.models.arm_model import ArmModelConfig, NetworkConfig
from neuclust.models.confidence import ConfidenceConfig
from neuclust.models.encoder import EncoderConfig
from neuclust.models.feature_net import AdamConfig, FeatureNetConfig, NetInputConfig, RetrainConfig
from neuclust.models.fitting import TrainingConfig
from neuclust.models.schedules import ScheduleConfig
from neuclust.models.state import check_shapes
from neuclust.models.tracker import TrackerConfig
from neuclust.persistence import read_state
from neuclust.policies.across import AcrossConfig, NeUClustAcross
from neuclust.policies.auto.change_point import DriftConfig
from neuclust.policies.auto.ensemble import EnsembleConfig
from neuclust.policies.auto.exploration import ExplorationConfig
from neuclust.policies.auto.learners.catalogue import LearnersConfig
from neuclust.policies.auto.policy import Auto, AutoConfig
from neuclust.policies.combinatorial_neural import (
    CombinatorialNeuralConfig,
    CombinatorialNeuralTS,
    CombinatorialNeuralUCB,
    CombinatorialSamplingConfig,
    EpsilonGreedy,
    EpsilonGreedyConfig,
)
from neuclust.policies.linear import (
    ArmwiseLinearConfig,
    ArmwiseLinUCB,
    LinearConfig,
    LinearSamplingConfig,
    LinearTS,
    SharedLinUCB,
)
from neuclust.policies.neuclust import NeUClust, NeUClustConfig
from neuclust.policies.neural_linear import NeuralLinear, NeuralLinearConfig, NeuralLinUCB, NeuralLinUCBConfig
from neuclust.policies.neural_mab import NeuralMAB, NeuralMABConfig
from neuclust.policies.reference import ClusterOracle, ClusterOracleConfig, Oracle, ReferenceConfig, Static, Uniform
from neuclust.policies.tabular import AdaptiveCellConfig, AdaptiveCellUCB, CountConfig, CountUCB, CubeBandit, CubeConfig
from neuclust.slates.clustering import ClusteringConfig
from neuclust.slates.slate_model import SlateModelConfig


class Problem(Protocol):
    """What a policy may be told of the problem it will play."""

    @property
    def dim(self) -> int: ...

    @property
    def slate_size(self) -> int: ...

    @property
    def arm_ids(self) -> Tensor: ...

    @property
    def profiles(self) -> Tensor: ...

    @property
    def counts(self) -> Tensor | None: ...

    def means(self, round: Round) -> Tensor: ...

    def expected_reward(self, round: Round, slate: Slate) -> float: ...

    def average_means(self) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A policy people can name: one line about it, its presets, and how it is made."""

    name: str
    summary: str
    presets: Mapping[str, Any]
    build: Callable[[Any, Problem, int], Policy]


# --- arm models -----------------------------------------------------------------------------------------------

_DEFAULT_ARMS = ArmModelConfig(encoder=EncoderConfig("scale", rho=None), network=NetworkConfig(width=40))

# The paper's block-symmetric start on duplicated inputs is, with one hidden layer, the net whose units come in equal
# pairs (`mirrored`): the same f, kernel and widths with the printed 420 parameters instead of 820.
_PAPER_ARMS = ArmModelConfig(
    encoder=EncoderConfig("scale", rho=5.0),
    network=NetworkConfig(width=20, init="mirrored"),
    schedule=ScheduleConfig("constant", gamma=1.0),
    training=TrainingConfig(step=1e-3),
)

# The reading with the published order and sizes: contexts as they are, and J steps from θ_0 after every round.
_RAW_ARMS = replace(_PAPER_ARMS, encoder=EncoderConfig("raw"), training=replace(_PAPER_ARMS.training, start="restart"))

_DIAGONAL_ARMS = replace(_DEFAULT_ARMS, confidence=ConfidenceConfig(form="diagonal"))

_LITERAL_ARMS = replace(
    _PAPER_ARMS,
    encoder=EncoderConfig("unit", duplicate=True),
    network=NetworkConfig(width=20, init="symmetric"),
    training=TrainingConfig(step=1e-3, loss_norm="sum", guard=False),
)

_LIFT_ARMS = replace(
    _PAPER_ARMS,
    encoder=EncoderConfig("lift", rho=5 * math.sqrt(10), duplicate=True),
    network=NetworkConfig(width=20, init="symmetric"),
)


def _authors_arms(width: int, gamma: float, step: float, steps: int) -> ArmModelConfig:
    """Raw contexts, biases, no √m, diagonal covariance, `steps` steps after every single arm."""
    return ArmModelConfig(
        encoder=EncoderConfig("raw"),
        network=NetworkConfig(width=width, init="torch-default", output_scale="one"),
        confidence=ConfidenceConfig(form="diagonal", per_width=False),
        schedule=ScheduleConfig("constant", gamma=gamma),
        training=TrainingConfig(
            steps=steps,
            step=step,
            loss_factor=2.0,  # MSE without the ½
            pull_by_width=False,
            anchor="zero",  # weight decay
            after="sample",
            guard=False,
        ),
    )


# --- NeUClust -------------------------------------------------------------------------------------------------

_PRINTED_SLATE = SlateModelConfig(width=15, scale="printed", training=TrainingConfig(step=1e-3))
_LITERAL_SLATE = replace(
    _PRINTED_SLATE,
    sort_input=False,
    training=TrainingConfig(step=1e-3, loss_norm="sum", pull_inside_sum=True, guard=False),
)


def _authors_slate(width: int, step: float, clamp: bool) -> SlateModelConfig:
    """Raw predictions in, realised rewards to learn from, decay towards zero."""
    training = TrainingConfig(step=step, loss_factor=2.0, pull_by_width=False, anchor="zero", guard=False)
    return SlateModelConfig(
        width=width,
        scale="printed",
        init="monotone",
        clamp_all=clamp,
        score="mean",
        sort_input=False,
        relu_input=False,
        train_input="realised",
        training=training,
    )


def _authors(arms: ArmModelConfig, slate: SlateModelConfig, clusters: int) -> NeUClustConfig:
    clustering = ClusteringConfig(count=clusters, small="error")
    return NeUClustConfig(arms, clustering, slate, rank_by="mean", covariance="scan")


def _yelp_arms(arms: ArmModelConfig) -> ArmModelConfig:
    return replace(arms, network=replace(arms.network, width=100))


def _yelp_sized(config: NeUClustConfig) -> NeUClustConfig:
    return replace(
        config,
        arms=_yelp_arms(config.arms),
        slate=replace(config.slate, width=30),
        clustering=replace(config.clustering, count=20),
    )


_PAPER = NeUClustConfig(_PAPER_ARMS, ClusteringConfig(count=22), _PRINTED_SLATE)

_NEUCLUST = {
    "default": NeUClustConfig(_DEFAULT_ARMS, ClusteringConfig(count=15)),
    "paper": _PAPER,
    "paper-yelp": _yelp_sized(_PAPER),
    "paper-raw": replace(_PAPER, arms=_RAW_ARMS),
    "paper-literal": NeUClustConfig(_LITERAL_ARMS, ClusteringConfig(count=22, small="error"), _LITERAL_SLATE),
    "paper-lift": replace(_PAPER, arms=_LIFT_ARMS),
    "authors-ml": _authors(_authors_arms(20, 0.01, 1e-3, 40), _authors_slate(20, 1e-3, clamp=True), 22),
    "authors-yelp": _authors(_authors_arms(100, 0.01, 1e-3, 40), _authors_slate(30, 0.02, clamp=False), 20),
}

# F reads optimistic scores: without constraints the slate is then the top K of all arms
_ACROSS = {
    "default": AcrossConfig(_DEFAULT_ARMS, ClusteringConfig(count=15)),
    "paper": AcrossConfig(_PAPER_ARMS, ClusteringConfig(count=22), _PRINTED_SLATE),  # F reads means, as in the paper
    "found-clusters": AcrossConfig(_DEFAULT_ARMS, ClusteringConfig(choose="stability")),
}

_CN_UCB = {
    "default": CombinatorialNeuralConfig(_DEFAULT_ARMS),
    "paper": CombinatorialNeuralConfig(_PAPER_ARMS),
    "paper-yelp": CombinatorialNeuralConfig(_yelp_arms(_PAPER_ARMS)),
    "paper-raw": CombinatorialNeuralConfig(_RAW_ARMS),
    "paper-literal": CombinatorialNeuralConfig(_LITERAL_ARMS),
    "authors-ml": CombinatorialNeuralConfig(_authors_arms(20, 1.0, 1e-2, 10)),
    "authors-yelp": CombinatorialNeuralConfig(_authors_arms(100, 0.1, 1e-3, 40)),
}


_DISCRETE = {
    "default": CubeConfig(EncoderConfig("scale", rho=5.0)),  # entries of ratings fill [0, 1]
    "authors-ml": CubeConfig(EncoderConfig("raw"), clip=False),  # eleven cubes an axis, not two
}

_NEURAL_LINEAR = {"default": NeuralLinearConfig(), "ucb": NeuralLinearConfig(exploration="ucb")}


def _authors_mab(rate: float, steps: int) -> NeuralMABConfig:
    """One linear layer with a bias on raw contexts, the whole history at every step, no slate net."""
    net = FeatureNetConfig(
        input=NetInputConfig(EncoderConfig("raw"), pooled=False, constant=0.0),
        depth=0,
        init="torch-default",
        adam=AdamConfig(rate=rate, steps=steps, batch_size=None, decay=0.0),
        retrain=RetrainConfig.always(1),
    )
    return NeuralMABConfig(net, slate_kind="none", shortcut=False)


_NEURAL_MAB = {
    "default": NeuralMABConfig(),
    "plain": NeuralMABConfig(slate_kind="plain", shortcut=False),
    "authors-ml": _authors_mab(1e-2, 50),
    "authors-yelp": _authors_mab(1e-3, 30),
}

_AUTO = {
    "default": AutoConfig(),
    "leader": AutoConfig(combine="leader"),
    "max": AutoConfig(combine="max", optimistic_slots=0),
    # one linear model whose scales are told by the data, for whoever knows that reward rises with affinity
    "linear": AutoConfig(
        ensemble=EnsembleConfig(learners="linear", drift=DriftConfig(threshold=None)),
        exploring=ExplorationConfig(eps0=0.0),
    ),
    # three learners, the largest score after a penalty for evidence: what the ensemble has to beat
    "prototype": AutoConfig(
        ensemble=EnsembleConfig(
            learners="linear,fourier,net", prior=2.0, settling=0, switching=0.0,
            drift=DriftConfig(threshold=None), options=LearnersConfig(linear_bonus=0.3),
        ),
        combine="max",
        optimistic_slots=0,
        exploring=ExplorationConfig(eps0=0.0),
    ),
}  # fmt: skip

# MovieLens: the mean of ratings of at least 4, and of those below (the usual reading of the paper)
_RATING_TRACKER = TrackerConfig(liked=4.4, disliked=2.8, weight=1.0)


def _online(preset: str, config: NeUClustConfig) -> NeUClustConfig:
    return replace(config, tracker=TrackerConfig() if preset == "default" else _RATING_TRACKER)


# --- the register ---------------------------------------------------------------------------------------------


def _plain(kind: Callable[..., Policy]) -> Callable[[Any, Problem, int], Policy]:
    return lambda config, problem, seed: kind(config, problem.dim, problem.slate_size, seed)


def _clustered(kind: Callable[..., Policy]) -> Callable[[Any, Problem, int], Policy]:
    """NeUClust and its kin: they cluster all arms there are, and trackers start from counts where there are some."""

    def build(config: Any, problem: Problem, seed: int) -> Policy:
        counts = None if config.tracker is None or problem.counts is None else (problem.arm_ids, problem.counts)
        catalogue = (problem.arm_ids, problem.profiles)
        return kind(config, problem.dim, problem.slate_size, seed, catalogue=catalogue, counts=counts)

    return build


def _oracle(config: ReferenceConfig, problem: Problem, seed: int) -> Policy:
    return Oracle(config, problem.dim, problem.slate_size, seed, means=problem.means)


def _cluster_oracle(config: ClusterOracleConfig, problem: Problem, seed: int) -> Policy:
    means, value, catalogue = problem.means, problem.expected_reward, (problem.arm_ids, problem.profiles)
    return ClusterOracle(config, problem.dim, problem.slate_size, seed, means=means, value=value, catalogue=catalogue)


def _static(config: ReferenceConfig, problem: Problem, seed: int) -> Policy:
    averages = (problem.arm_ids, problem.average_means())
    return Static(config, problem.dim, problem.slate_size, seed, averages=averages)


POLICIES: dict[str, PolicySpec] = {
    spec.name: spec
    for spec in (
        PolicySpec(
            "auto",
            "nothing to tune: linear, quadratic and neural learners share all data and count by their foresight",
            _AUTO,
            _plain(Auto),
        ),
        PolicySpec(
            "neuclust", "neural arm model, exact widths, top K of the best cluster", _NEUCLUST, _clustered(NeUClust)
        ),
        PolicySpec(
            "neuclust-online",
            "NeUClust that tracks profiles from what it sees and re-clusters every round",
            {name: _online(name, config) for name, config in _NEUCLUST.items()},
            _clustered(NeUClust),
        ),
        PolicySpec(
            "neuclust-across",
            "NeUClust whose slate may mix clusters, with limits a category, required and excluded arms, diversity",
            _ACROSS,
            _clustered(NeUClustAcross),
        ),
        PolicySpec(
            "cn-ucb", "the same arm model without clusters: global top K", _CN_UCB, _plain(CombinatorialNeuralUCB)
        ),
        PolicySpec(
            "linucb", "one shared linear model (C2UCB), top K", {"default": LinearConfig()}, _plain(SharedLinUCB)
        ),
        PolicySpec(
            "cn-ts",
            "the same arm model, global top K of the largest of M posterior samples",
            {"default": CombinatorialSamplingConfig(_DEFAULT_ARMS)},
            _plain(CombinatorialNeuralTS),
        ),
        PolicySpec(
            "neural-ucb",
            "NeuralUCB: the same arm model with a diagonal covariance, top K",
            {"default": CombinatorialNeuralConfig(_DIAGONAL_ARMS)},
            _plain(CombinatorialNeuralUCB),
        ),
        PolicySpec(
            "neural-ts",
            "NeuralTS: one sample an arm with a diagonal covariance, top K",
            {"default": CombinatorialSamplingConfig(_DIAGONAL_ARMS, samples=1)},
            _plain(CombinatorialNeuralTS),
        ),
        PolicySpec(
            "neural-linear",
            "NeuralLinear: Bayesian regression on the last hidden layer, one draw a round, top K",
            _NEURAL_LINEAR,
            _plain(NeuralLinear),
        ),
        PolicySpec(
            "neural-linucb",
            "Neural-LinUCB: LinUCB on the last hidden layer as it was at every play, top K",
            {"default": NeuralLinUCBConfig()},
            _plain(NeuralLinUCB),
        ),
        PolicySpec(
            "neural-mab",
            "Neural-MAB: a net for arms and one for slates, greedy by marginal contribution",
            _NEURAL_MAB,
            _plain(NeuralMAB),
        ),
        PolicySpec(
            "epsilon-greedy",
            "the same arm model without widths: a random slate with chance c/t, else the top K",
            {"default": EpsilonGreedyConfig(_DIAGONAL_ARMS)},
            _plain(EpsilonGreedy),
        ),
        PolicySpec(
            "linucb-disjoint",
            "a linear model for every arm (K-LinUCB), top K",
            {"default": ArmwiseLinearConfig(EncoderConfig("raw"))},
            _plain(ArmwiseLinUCB),
        ),
        PolicySpec(
            "linucb-hybrid",
            "a shared linear model and one for every arm, top K",
            {"default": ArmwiseLinearConfig(EncoderConfig("scale", rho=5.0), shared=True)},
            _plain(ArmwiseLinUCB),
        ),
        PolicySpec(
            "lin-ts",
            "one shared linear model, top K of one posterior draw a round",
            {"default": LinearSamplingConfig()},
            _plain(LinearTS),
        ),
        PolicySpec("cc-mab", "mean rewards of equal cubes of the context space", _DISCRETE, _plain(CubeBandit)),
        PolicySpec(
            "acc-ucb",
            "mean rewards of cells that are refined where arms are played, top K",
            {"default": AdaptiveCellConfig()},
            _plain(AdaptiveCellUCB),
        ),
        PolicySpec("cucb", "every arm's own mean reward, no contexts", {"default": CountConfig()}, _plain(CountUCB)),
        PolicySpec("uniform", "a slate at random", {"default": ReferenceConfig()}, _plain(Uniform)),
        PolicySpec(
            "static", "knows the average means: one slate for all rounds", {"default": ReferenceConfig()}, _static
        ),
        PolicySpec(
            "cluster-oracle",
            "knows every mean: the best slate inside one cluster",
            {"default": ClusterOracleConfig(ClusteringConfig(count=15))},
            _cluster_oracle,
        ),
        PolicySpec("oracle", "knows every mean: the regret of 0", {"default": ReferenceConfig()}, _oracle),
    )
}


def policy_spec(name: str) -> PolicySpec:
    """The policy of this name, or an error with the closest ones."""
    if name not in POLICIES:
        raise ConfigError(f"--policy: no policy {name!r}; {suggestion(name, POLICIES)}")
    return POLICIES[name]


def policy_config(
    name: str, preset: str = "default", clusters: int | None = None, overrides: Mapping[str, str] | None = None
) -> Any:
    """The frozen configuration of a policy's preset, with settings replaced."""
    spec = policy_spec(name)
    if preset not in spec.presets:
        raise ConfigError(f"--preset: {name} has no preset {preset!r}; {suggestion(preset, spec.presets)}")
    config = spec.presets[preset]
    if clusters is not None and hasattr(config, "clustering"):
        config = replace(config, clustering=replace(config.clustering, count=clusters))
    for key, text in (overrides or {}).items():
        config = with_setting(config, key, text, name)
    return config


def build_policy(
    name: str,
    *,
    environment: Problem,
    preset: str = "default",
    seed: int = 0,
    clusters: int | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Policy:
    """A fresh policy for this problem."""
    config = policy_config(name, preset, clusters, overrides)
    return policy_spec(name).build(config, environment, seed)


_CLASSES: dict[str, tuple[type, Callable[..., Policy]]] = {
    "auto": (AutoConfig, Auto),
    "neuclust": (NeUClustConfig, NeUClust),
    "neuclust-across": (AcrossConfig, NeUClustAcross),
    "cn-ucb": (CombinatorialNeuralConfig, CombinatorialNeuralUCB),
    "linucb": (LinearConfig, SharedLinUCB),
    "cn-ts": (CombinatorialSamplingConfig, CombinatorialNeuralTS),
    "neural-linear": (NeuralLinearConfig, NeuralLinear),
    "neural-linucb": (NeuralLinUCBConfig, NeuralLinUCB),
    "neural-mab": (NeuralMABConfig, NeuralMAB),
    "epsilon-greedy": (EpsilonGreedyConfig, EpsilonGreedy),
    "linucb-disjoint": (ArmwiseLinearConfig, ArmwiseLinUCB),
    "lin-ts": (LinearSamplingConfig, LinearTS),
    "cc-mab": (CubeConfig, CubeBandit),
    "acc-ucb": (AdaptiveCellConfig, AdaptiveCellUCB),
    "cucb": (CountConfig, CountUCB),
    "cluster-oracle": (ClusterOracleConfig, ClusterOracle),
    "uniform": (ReferenceConfig, Uniform),
    "static": (ReferenceConfig, Static),
    "oracle": (ReferenceConfig, Oracle),
}


MOST_DIM, MOST_SLATE = 2**22, 2**16  # features of an arm and arms of a slate: beyond, a manifest is damaged


def load_policy(directory: Path, **parts: Any) -> Policy:
    """A policy as `save` left it; `parts` are what cannot be saved: `clusterer=`, the oracles' `means=`
    and `value=`, and `catalogue=` where the policy had not been updated yet."""
    manifest, state = read_state(directory)
    name = manifest.get("policy")
    if not isinstance(name, str) or name not in _CLASSES:
        raise SaveError(f"{directory}: no policy {name!r:.100} in this version; known: {', '.join(_CLASSES)}")
    try:
        policy = _restored(name, manifest, state, parts)
    except (NeuclustError, ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError,
            ValueError) as error:  # fmt: skip
        said = " ".join(str(error).split())
        raise SaveError(f"{directory}: expected a complete save of {name}, got {said or repr(error)}") from error
    return policy


def _restored(name: str, manifest: Mapping[str, Any], state: Mapping[str, Tensor], parts: Mapping[str, Any]) -> Policy:
    """The policy of a manifest with its state; nothing is made before the tensors say that there is room for it."""
    kind, make = _CLASSES[name]
    unknown = set(manifest) ^ {"format", "policy", "config", "dim", "slate_size", "seed"}
    if unknown:
        raise StateError(f"a manifest with unknown or missing entries ({', '.join(sorted(unknown))})")
    dim = _whole(manifest, "dim", 1, MOST_DIM)
    slate_size = _whole(manifest, "slate_size", 1, MOST_SLATE)
    seed = _whole(manifest, "seed", -(2**63), 2**63 - 1)
    config: Any = from_mapping(kind, manifest["config"])
    shapes = getattr(make, "saved_shapes", None)
    if shapes is not None:
        check_shapes(state, shapes(config, dim, slate_size))
    policy = make(config, dim, slate_size, seed, **parts)
    policy.load_state_dict(state)
    _check_restored(policy, state, seed)
    return policy


def _whole(manifest: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = manifest[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise StateError(f"{name} {value!r:.100} where a whole number from {least} to {most} was expected")
    return value


def _check_restored(policy: Policy, state: Mapping[str, Tensor], seed: int) -> None:
    """Refuse tensors nobody asked for, and a manifest and tensors that tell different seeds."""
    strange = sorted(set(state) - set(policy.state_dict()))
    if strange:
        raise StateError(f"tensors it does not have: {', '.join(strange[:5])}")
    if getattr(policy, "seed", seed) != seed:
        raise StateError(f"seed {seed} in the manifest and another one among the tensors")


# --- policies and problems from outside -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Registration:
    """A policy or problem from outside the package, as data that travels to worker processes."""

    kind: str  # policy or environment
    name: str
    target: str  # package.module:attribute


def outside() -> tuple[Registration, ...]:
    """What was registered in this process; a worker calls `adopt` with it before it plays."""
    return ()


def adopt(registrations: Sequence[Registration]) -> None:
    """Register in this process what another one had registered."""


def source_hash(name: str) -> str | None:
    """SHA-256 of the module of a policy or problem from outside; None for what neuclust ships, whose code is hashed."""
    return None


def knows_truth(name: str) -> bool:
    """Whether the policy of this name is told the truth (a yardstick and no learner); False where nobody knows it."""
    return name in ("oracle", "static", "cluster-oracle")
