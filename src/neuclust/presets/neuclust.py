"""NeUClust, its online variant, and NeUClust with slates across clusters."""

from dataclasses import replace

from neuclust.models.arm_model import ArmModelConfig
from neuclust.models.fitting import TrainingConfig
from neuclust.models.tracker import TrackerConfig
from neuclust.policies.across import AcrossConfig
from neuclust.policies.neuclust import NeUClustConfig
from neuclust.presets.arms import (
    DEFAULT_ARMS,
    LIFT_ARMS,
    LITERAL_ARMS,
    PAPER_ARMS,
    RAW_ARMS,
    SLATES,
    authors_arms,
    yelp_arms,
)
from neuclust.slates.clustering import ClusteringConfig
from neuclust.slates.slate_model import SlateModelConfig

_BOUNDED_SLATE = SlateModelConfig(training=TrainingConfig(memory=SLATES))
_PRINTED_SLATE = SlateModelConfig(width=15, scale="printed", training=TrainingConfig(step=1e-3))
_LITERAL_TRAINING = TrainingConfig(step=1e-3, loss_norm="sum", pull_inside_sum=True, guard=False)
_LITERAL_SLATE = replace(_PRINTED_SLATE, sort_input=False, training=_LITERAL_TRAINING)


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


def _yelp_sized(config: NeUClustConfig) -> NeUClustConfig:
    slate, clustering = replace(config.slate, width=30), replace(config.clustering, count=20)
    return replace(config, arms=yelp_arms(config.arms), slate=slate, clustering=clustering)


_PAPER = NeUClustConfig(PAPER_ARMS, ClusteringConfig(count=22), _PRINTED_SLATE)

NEUCLUST = {
    "default": NeUClustConfig(DEFAULT_ARMS, ClusteringConfig(count=15), _BOUNDED_SLATE),
    "paper": _PAPER,
    "paper-yelp": _yelp_sized(_PAPER),
    "paper-raw": replace(_PAPER, arms=RAW_ARMS),
    "paper-literal": NeUClustConfig(LITERAL_ARMS, ClusteringConfig(count=22, small="error"), _LITERAL_SLATE),
    "paper-lift": replace(_PAPER, arms=LIFT_ARMS),
    "authors-ml": _authors(authors_arms(20, 0.01, 1e-3, 40), _authors_slate(20, 1e-3, clamp=True), 22),
    "authors-yelp": _authors(authors_arms(100, 0.01, 1e-3, 40), _authors_slate(30, 0.02, clamp=False), 20),
}

# F reads optimistic scores: without constraints the slate is then the top K of all arms
_OPTIMISTIC_SLATE = replace(_BOUNDED_SLATE, input="optimistic")
ACROSS = {
    "default": AcrossConfig(DEFAULT_ARMS, ClusteringConfig(count=15), _OPTIMISTIC_SLATE),
    "paper": AcrossConfig(PAPER_ARMS, ClusteringConfig(count=22), _PRINTED_SLATE),  # F reads means, as in the paper
    "found-clusters": AcrossConfig(DEFAULT_ARMS, ClusteringConfig(choose="stability"), _OPTIMISTIC_SLATE),
}

# MovieLens: the mean of ratings of at least 4, and of those below (the usual reading of the paper)
_RATING_TRACKER = TrackerConfig(liked=4.4, disliked=2.8, weight=1.0)
NEUCLUST_ONLINE = {
    name: replace(config, tracker=TrackerConfig() if name == "default" else _RATING_TRACKER)
    for name, config in NEUCLUST.items()
}
