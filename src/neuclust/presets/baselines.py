"""The policies NeUClust is compared with."""

from dataclasses import replace

from neuclust.models.encoder import EncoderConfig
from neuclust.models.feature_net import AdamConfig, FeatureNetConfig, NetInputConfig, RetrainConfig
from neuclust.policies.combinatorial_neural import (
    CombinatorialNeuralConfig,
    CombinatorialSamplingConfig,
    EpsilonGreedyConfig,
)
from neuclust.policies.linear import ArmwiseLinearConfig, LinearConfig, LinearSamplingConfig
from neuclust.policies.neural_linear import NeuralLinearConfig, NeuralLinUCBConfig
from neuclust.policies.neural_mab import NeuralMABConfig
from neuclust.policies.popular import PopularConfig
from neuclust.policies.reference import ClusterOracleConfig, ReferenceConfig
from neuclust.policies.tabular import AdaptiveCellConfig, CountConfig, CubeConfig
from neuclust.presets import arms
from neuclust.slates.clustering import ClusteringConfig

CN_UCB = {
    "default": CombinatorialNeuralConfig(arms.DEFAULT_ARMS),
    "paper": CombinatorialNeuralConfig(arms.PAPER_ARMS),
    "paper-yelp": CombinatorialNeuralConfig(arms.yelp_arms(arms.PAPER_ARMS)),
    "paper-raw": CombinatorialNeuralConfig(arms.RAW_ARMS),
    "paper-literal": CombinatorialNeuralConfig(arms.LITERAL_ARMS),
    "authors-ml": CombinatorialNeuralConfig(arms.authors_arms(20, 1.0, 1e-2, 10)),
    "authors-yelp": CombinatorialNeuralConfig(arms.authors_arms(100, 0.1, 1e-3, 40)),
}
CN_TS = {"default": CombinatorialSamplingConfig(arms.DEFAULT_ARMS)}
NEURAL_UCB = {"default": CombinatorialNeuralConfig(arms.DIAGONAL_ARMS)}
NEURAL_TS = {"default": CombinatorialSamplingConfig(arms.DIAGONAL_ARMS, samples=1)}
EPSILON_GREEDY = {"default": EpsilonGreedyConfig(arms.DIAGONAL_ARMS)}
LINUCB = {"default": LinearConfig()}
LINUCB_DISJOINT = {"default": ArmwiseLinearConfig(EncoderConfig("raw"))}
LINUCB_HYBRID = {"default": ArmwiseLinearConfig(EncoderConfig("scale", rho=5.0), shared=True)}
LIN_TS = {"default": LinearSamplingConfig()}
ACC_UCB = {"default": AdaptiveCellConfig()}
CUCB = {"default": CountConfig()}
POPULAR = {"default": PopularConfig()}
REFERENCE = {"default": ReferenceConfig()}
CLUSTER_ORACLE = {"default": ClusterOracleConfig(ClusteringConfig(count=15))}

CC_MAB = {
    "default": CubeConfig(EncoderConfig("scale", rho=5.0)),  # entries of ratings fill [0, 1]
    "authors-ml": CubeConfig(EncoderConfig("raw"), clip=False),  # eleven cubes per axis, not two
}


def _bounded(net: FeatureNetConfig) -> FeatureNetConfig:
    return replace(net, memory=arms.MEMORY)


NEURAL_LINUCB = {"default": NeuralLinUCBConfig(_bounded(NeuralLinUCBConfig().net))}
_NEURAL_LINEAR = NeuralLinearConfig(_bounded(FeatureNetConfig()))
NEURAL_LINEAR = {"default": _NEURAL_LINEAR, "ucb": replace(_NEURAL_LINEAR, exploration="ucb")}


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


_NEURAL_MAB = NeuralMABConfig(_bounded(NeuralMABConfig().net))
NEURAL_MAB = {
    "default": _NEURAL_MAB,
    "plain": replace(_NEURAL_MAB, slate_kind="plain", shortcut=False),
    "authors-ml": _authors_mab(1e-2, 50),
    "authors-yelp": _authors_mab(1e-3, 30),
}
