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


# fmt: off
SHIPPED = (
    PolicySpec("auto",
        "nothing to tune: linear, quadratic and neural learners share all data and count by their foresight",
        Auto, AUTO),
    PolicySpec("neuclust",
        "neural arm model, exact widths, top K of the best cluster", NeUClust, NEUCLUST, _CLUSTERING),
    PolicySpec("neuclust-online",
        "NeUClust that tracks profiles from what it sees and re-clusters every round",
        NeUClust, NEUCLUST_ONLINE, _CLUSTERING),
    PolicySpec("neuclust-across",
        "NeUClust whose slate may mix clusters, with limits per category, required and excluded arms, diversity",
        NeUClustAcross, ACROSS, _CLUSTERING),
    PolicySpec("cn-ucb", "the same arm model without clusters: global top K", CombinatorialNeuralUCB, baselines.CN_UCB),
    PolicySpec("linucb", "one shared linear model (C2UCB), top K", SharedLinUCB, baselines.LINUCB),
    PolicySpec("cn-ts",
        "the same arm model, global top K of the largest of M posterior samples",
        CombinatorialNeuralTS, baselines.CN_TS),
    PolicySpec("neural-ucb",
        "NeuralUCB: the same arm model with a diagonal covariance, top K",
        CombinatorialNeuralUCB, baselines.NEURAL_UCB),
    PolicySpec("neural-ts",
        "NeuralTS: one sample per arm with a diagonal covariance, top K", CombinatorialNeuralTS, baselines.NEURAL_TS),
    PolicySpec("neural-linear",
        "NeuralLinear: Bayesian regression on the last hidden layer, one draw per round, top K",
        NeuralLinear, baselines.NEURAL_LINEAR),
    PolicySpec("neural-linucb",
        "Neural-LinUCB: LinUCB on the last hidden layer as it was at every play, top K",
        NeuralLinUCB, baselines.NEURAL_LINUCB),
    PolicySpec("neural-mab",
        "Neural-MAB: a net for arms and one for slates, greedy by marginal contribution",
        NeuralMAB, baselines.NEURAL_MAB),
    PolicySpec("epsilon-greedy",
        "the same arm model without widths: a random slate with chance c/t, else the top K",
        EpsilonGreedy, baselines.EPSILON_GREEDY),
    PolicySpec("linucb-disjoint",
        "a linear model for every arm (K-LinUCB), top K", ArmwiseLinUCB, baselines.LINUCB_DISJOINT),
    PolicySpec("linucb-hybrid",
        "a shared linear model and one for every arm, top K", ArmwiseLinUCB, baselines.LINUCB_HYBRID),
    PolicySpec("lin-ts", "one shared linear model, top K of one posterior draw per round", LinearTS, baselines.LIN_TS),
    PolicySpec("cc-mab", "mean rewards of equal cubes of the context space", CubeBandit, baselines.CC_MAB),
    PolicySpec("acc-ucb",
        "mean rewards of cells that are refined where arms are played, top K", AdaptiveCellUCB, baselines.ACC_UCB),
    PolicySpec("cucb", "every arm's own mean reward, no contexts", CountUCB, baselines.CUCB),
    PolicySpec("popular", "every arm's smoothed mean reward, no contexts, top K", Popular, baselines.POPULAR),
    PolicySpec("uniform", "a slate at random", Uniform, baselines.REFERENCE),
    PolicySpec("static",
        "knows the average means: one slate for all rounds", Static, baselines.REFERENCE, ("averages",)),
    PolicySpec("cluster-oracle",
        "knows every mean: the best slate inside one cluster",
        ClusterOracle, baselines.CLUSTER_ORACLE, ("means", "value", "catalogue")),
    PolicySpec("oracle", "knows every mean: the regret of 0", Oracle, baselines.REFERENCE, ("means",)),
)
# fmt: on
