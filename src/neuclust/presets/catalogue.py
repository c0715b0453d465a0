"""The policies neuclust ships: class, presets, and what each needs from a problem."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from neuclust.core import Policy
from neuclust.environments.problem import HasArms, HasAverages, HasCounts, HasMeans
from neuclust.extensions import portable_place
from neuclust.policies.across import NeUClustAcross
from neuclust.policies.auto.policy import Auto
from neuclust.policies.combinatorial_neural import CombinatorialNeuralTS, CombinatorialNeuralUCB, EpsilonGreedy
from neuclust.policies.linear import ArmwiseLinUCB, LinearTS, SharedLinUCB
from neuclust.policies.neuclust import NeUClust
from neuclust.policies.neural_linear import NeuralLinear, NeuralLinUCB
from neuclust.policies.neural_mab import NeuralMAB
from neuclust.policies.popular import Popular
from neuclust.policies.reference import ClusterOracle, Oracle, Static, Uniform
from neuclust.policies.tabular import AdaptiveCellUCB, CountUCB, CubeBandit
from neuclust.presets import baselines
from neuclust.presets.auto import AUTO
from neuclust.presets.listing import SUMMARIES
from neuclust.presets.neuclust import ACROSS, NEUCLUST, NEUCLUST_ONLINE

# What a policy's constructor may take from the problem, under these names: the optional members of an environment it
# is made of. The last three are the truth: a policy that takes one is a yardstick and cannot be built without it.
NEEDS: Mapping[str, tuple[type, Callable[[Any], Any]]] = {
    "catalogue": (HasArms, lambda problem: (problem.arm_ids, problem.profiles)),
    "counts": (HasCounts, lambda problem: None if problem.counts is None else (problem.arm_ids, problem.counts)),
    "means": (HasMeans, lambda problem: problem.means),
    "value": (HasMeans, lambda problem: problem.expected_reward),
    "averages": (HasAverages, lambda problem: (problem.arm_ids, problem.average_means())),
}
TRUTH = {"means": "means", "value": "means and expected_reward", "averages": "arm_ids, profiles and average_means"}
_CLUSTERING = ("catalogue", "counts")


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A policy's name, summary, class (`policy(config, dim, slate_size, seed, **needs)`), presets and needs."""

    name: str
    summary: str
    policy: Callable[..., Policy]
    presets: Mapping[str, Any]
    needs: tuple[str, ...] = ()

    @property
    def source(self) -> Any:
        return self.policy

    @property
    def options(self) -> dict[str, Any]:
        presets = {preset: asdict(config) for preset, config in self.presets.items()}
        return {"config": portable_place(self.config), "presets": presets, "summary": self.summary, "needs": self.needs}

    @property
    def config(self) -> type:
        """The class of the configurations, a frozen dataclass."""
        return type(self.presets["default"])

    @property
    def knows_truth(self) -> bool:
        """Whether the policy is given the truth: a yardstick, not a learner."""
        return not TRUTH.keys().isdisjoint(self.needs)

    @property
    def clusters(self) -> bool:
        """Whether the policy groups arms, by its setting `clustering`."""
        return hasattr(self.presets["default"], "clustering")

    @property
    def saved_as(self) -> str:
        """The name in a save: the class's own, since several names may share a class."""
        return str(getattr(self.policy, "name", self.name))


def _shipped(name: str, policy: Callable[..., Policy], presets: Mapping[str, Any], *needs: str) -> PolicySpec:
    return PolicySpec(name, SUMMARIES[name], policy, presets, needs)


SHIPPED = (
    _shipped("auto", Auto, AUTO),
    _shipped("neuclust", NeUClust, NEUCLUST, *_CLUSTERING),
    _shipped("neuclust-online", NeUClust, NEUCLUST_ONLINE, *_CLUSTERING),
    _shipped("neuclust-across", NeUClustAcross, ACROSS, *_CLUSTERING),
    _shipped("cn-ucb", CombinatorialNeuralUCB, baselines.CN_UCB),
    _shipped("linucb", SharedLinUCB, baselines.LINUCB),
    _shipped("cn-ts", CombinatorialNeuralTS, baselines.CN_TS),
    _shipped("neural-ucb", CombinatorialNeuralUCB, baselines.NEURAL_UCB),
    _shipped("neural-ts", CombinatorialNeuralTS, baselines.NEURAL_TS),
    _shipped("neural-linear", NeuralLinear, baselines.NEURAL_LINEAR),
    _shipped("neural-linucb", NeuralLinUCB, baselines.NEURAL_LINUCB),
    _shipped("neural-mab", NeuralMAB, baselines.NEURAL_MAB),
    _shipped("epsilon-greedy", EpsilonGreedy, baselines.EPSILON_GREEDY),
    _shipped("linucb-disjoint", ArmwiseLinUCB, baselines.LINUCB_DISJOINT),
    _shipped("linucb-hybrid", ArmwiseLinUCB, baselines.LINUCB_HYBRID),
    _shipped("lin-ts", LinearTS, baselines.LIN_TS),
    _shipped("cc-mab", CubeBandit, baselines.CC_MAB),
    _shipped("acc-ucb", AdaptiveCellUCB, baselines.ACC_UCB),
    _shipped("cucb", CountUCB, baselines.CUCB),
    _shipped("popular", Popular, baselines.POPULAR),
    _shipped("uniform", Uniform, baselines.REFERENCE),
    _shipped("static", Static, baselines.REFERENCE, "averages"),
    _shipped("cluster-oracle", ClusterOracle, baselines.CLUSTER_ORACLE, "means", "value", "catalogue"),
    _shipped("oracle", Oracle, baselines.REFERENCE, "means"),
)
