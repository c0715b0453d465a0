"""Names, summaries and presets of the policies neuclust ships, for lists that must not wait for torch.

`presets.catalogue` takes its summaries from here; a test holds the names of the presets equal.
"""

from typing import NamedTuple


class Listed(NamedTuple):
    """A policy in a list."""

    name: str
    summary: str
    presets: tuple[str, ...] = ("default",)


# fmt: off
LISTED = (
    Listed("auto",
        "nothing to tune: linear, quadratic and neural learners share all data and count by their foresight",
        ("default", "linear")),
    Listed("neuclust",
        "neural arm model, exact widths, top K of the best cluster",
        ("default", "paper", "paper-yelp", "paper-raw", "paper-literal", "paper-lift", "authors-ml", "authors-yelp")),
    Listed("neuclust-online",
        "NeUClust that tracks profiles from what it sees and re-clusters every round",
        ("default", "paper", "paper-yelp", "paper-raw", "paper-literal", "paper-lift", "authors-ml", "authors-yelp")),
    Listed("neuclust-across",
        "NeUClust whose slate may mix clusters, with limits per category, required and excluded arms, diversity",
        ("default", "paper", "found-clusters")),
    Listed("cn-ucb",
        "the same arm model without clusters: global top K",
        ("default", "paper", "paper-yelp", "paper-raw", "paper-literal", "authors-ml", "authors-yelp")),
    Listed("linucb", "one shared linear model (C2UCB), top K"),
    Listed("cn-ts", "the same arm model, global top K of the largest of M posterior samples"),
    Listed("neural-ucb", "NeuralUCB: the same arm model with a diagonal covariance, top K"),
    Listed("neural-ts", "NeuralTS: one sample per arm with a diagonal covariance, top K"),
    Listed("neural-linear",
        "NeuralLinear: Bayesian regression on the last hidden layer, one draw per round, top K",
        ("default", "ucb")),
    Listed("neural-linucb", "Neural-LinUCB: LinUCB on the last hidden layer as it was at every play, top K"),
    Listed("neural-mab",
        "Neural-MAB: a net for arms and one for slates, greedy by marginal contribution",
        ("default", "plain", "authors-ml", "authors-yelp")),
    Listed("epsilon-greedy", "the same arm model without widths: a random slate with chance c/t, else the top K"),
    Listed("linucb-disjoint", "a linear model for every arm (K-LinUCB), top K"),
    Listed("linucb-hybrid", "a shared linear model and one for every arm, top K"),
    Listed("lin-ts", "one shared linear model, top K of one posterior draw per round"),
    Listed("cc-mab", "mean rewards of equal cubes of the context space", ("default", "authors-ml")),
    Listed("acc-ucb", "mean rewards of cells that are refined where arms are played, top K"),
    Listed("cucb", "every arm's own mean reward, no contexts"),
    Listed("popular", "every arm's smoothed mean reward, no contexts, top K"),
    Listed("uniform", "a slate at random"),
    Listed("static", "knows the average means: one slate for all rounds"),
    Listed("cluster-oracle", "knows every mean: the best slate inside one cluster"),
    Listed("oracle", "knows every mean: the regret of 0"),
)
# fmt: on
SUMMARIES = {one.name: one.summary for one in LISTED}
