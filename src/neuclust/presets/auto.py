"""The ensemble that needs no tuning, and its linear learner alone."""

from neuclust.policies.auto.change_point import DriftConfig
from neuclust.policies.auto.ensemble import EnsembleConfig
from neuclust.policies.auto.exploration import ExplorationConfig
from neuclust.policies.auto.policy import AutoConfig

AUTO = {
    "default": AutoConfig(),
    # one linear model with scales from the data, where reward is known to rise with affinity
    "linear": AutoConfig(
        ensemble=EnsembleConfig(learners="linear", drift=DriftConfig(threshold=None)),
        exploring=ExplorationConfig(most=0.0),
    ),
}
