"""The ensemble that needs no tuning, and simpler forms of it."""

from neuclust.policies.auto.change_point import DriftConfig
from neuclust.policies.auto.ensemble import EnsembleConfig
from neuclust.policies.auto.exploration import ExplorationConfig
from neuclust.policies.auto.learners.catalogue import LearnersConfig
from neuclust.policies.auto.policy import AutoConfig

AUTO = {
    "default": AutoConfig(),
    "leader": AutoConfig(combine="leader"),
    "max": AutoConfig(combine="max", optimistic_slots=0),
    # one linear model with scales from the data, where reward is known to rise with affinity
    "linear": AutoConfig(
        ensemble=EnsembleConfig(learners="linear", drift=DriftConfig(threshold=None)),
        exploring=ExplorationConfig(most=0.0),
    ),
    # three learners, the largest score after a penalty for evidence: the ensemble to beat
    "prototype": AutoConfig(
        ensemble=EnsembleConfig(
            learners="linear,fourier,net", prior=2.0, settling=0, switching=0.0,
            drift=DriftConfig(threshold=None), options=LearnersConfig(linear_bonus=0.3),
        ),
        combine="max",
        optimistic_slots=0,
        exploring=ExplorationConfig(most=0.0),
    ),
}  # fmt: skip
