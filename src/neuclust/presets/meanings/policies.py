"""Settings of the policies but `auto`."""

_TIE = "Who wins among equal scores: the smaller arm id, or a random one."
_ARMS = "The neural arm model."
_ENCODER = "How a context is scaled before the model reads it."
_CLUSTERING = "How arms are grouped."
_SLATE = "The slate model F."
_TRACKER = "Learns the profiles while it plays (the online variant); none: profiles stay as they are given."
_RIDGE = "λ of the initial covariance λI."
_ALPHA = "α, the factor of the widths; a larger one explores more."
_NET = "The net whose last hidden layer is read."
_HORIZON = "Rounds T that are planned for; they set the size of the cells."

POLICIES = {
    "NeUClustConfig": {
        "arms": _ARMS,
        "clustering": _CLUSTERING,
        "slate": _SLATE,
        "tracker": _TRACKER,
        "rank_by": "Arms of a cluster are ranked by optimistic scores (the paper) or by means (the authors' code).",
        "covariance": "Gradients enter for the played slate (the paper), or for the best slate so far while clusters"
        " are scanned (the authors' code).",
        "tie": _TIE,
    },
    "AcrossConfig": {
        "arms": _ARMS,
        "clustering": _CLUSTERING,
        "slate": _SLATE,
        "tracker": _TRACKER,
        "assembly": "How slates are searched for.",
        "constraints": "What every slate must keep to.",
        "explore": "c: one slot for the least played cluster, if it was played fewer than c·log(1 + updates) times;"
        " 0: never.",
        "tie": _TIE,
    },
    "CombinatorialNeuralConfig": {"arms": _ARMS, "tie": _TIE},
    "CombinatorialSamplingConfig": {
        "arms": f"{_ARMS} Its schedule is the scale ν of the posterior.",
        "samples": "Posterior samples M whose largest counts; none: what K arms need to be optimistic together.",
        "tie": _TIE,
    },
    "EpsilonGreedyConfig": {
        "arms": _ARMS,
        "exploration": "c of the chance min(1, c/t) of a slate at random.",
        "tie": _TIE,
    },
    "LinearConfig": {
        "encoder": _ENCODER,
        "alpha": _ALPHA,
        "ridge": _RIDGE,
        "bias": "Add a constant feature.",
        "refresh": "Updates between two exact factorisations, so that rounding cannot pile up.",
        "tie": _TIE,
    },
    "ArmwiseLinearConfig": {
        "encoder": _ENCODER,
        "shared": "Add one coefficient vector that all arms share (hybrid).",
        "alpha": _ALPHA,
        "ridge": _RIDGE,
        "tie": _TIE,
    },
    "LinearSamplingConfig": {
        "encoder": _ENCODER,
        "spread": "ν, the scale of the posterior; a larger one explores more.",
        "ridge": _RIDGE,
        "tie": _TIE,
    },
    "NeuralLinearConfig": {
        "net": _NET,
        "posterior": "Bayesian regression on it.",
        "exploration": "ts draws one weight vector per round, ucb adds spread standard deviations to the mean.",
        "spread": "Standard deviations added by ucb, or the scale of the draws of ts.",
        "tie": _TIE,
    },
    "NeuralLinUCBConfig": {
        "net": _NET,
        "alpha": _ALPHA,
        "ridge": _RIDGE,
        "head": "Fit the hidden layers below the bandit's own coefficients, or with an output layer of their own.",
        "tie": _TIE,
    },
    "NeuralMABConfig": {
        "net": "The net f_A of the arms' qualities.",
        "slate_kind": "The net f_B of slates: monotone (slate), plain (slate_net), or none: the top K by quality.",
        "slate": "The monotone f_B.",
        "slate_net": "The plain f_B.",
        "shortcut": "Take the top K by quality where the greedy slate of a monotone f_B is that.",
        "epsilon": "c of the chance min(1, c/t) of a slate at random; 0: never.",
        "tie": _TIE,
    },
    "CubeConfig": {
        "encoder": f"{_ENCODER} Its result should fill [0, 1].",
        "horizon": _HORIZON,
        "smoothness": "Hölder exponent of the mean reward.",
        "clip": "Contexts outside [0, 1] fall into the outermost cubes; otherwise into further ones.",
        "tie": _TIE,
    },
    "AdaptiveCellConfig": {
        "encoder": f"{_ENCODER} Its result should fill [0, 1].",
        "horizon": _HORIZON,
        "v1": "A cell of depth h has a diameter of at most v1·ρ^h; none: 2√D.",
        "v2": "A cell of depth h holds a ball of radius v2·ρ^h; none: ¼.",
        "rho": "ρ, by which cells shrink per depth; none: 2^(−1/D), halving the longest side.",
        "tie": _TIE,
    },
    "CountConfig": {
        "bonus": "c of the bonus √(c log t / n); a larger one explores more.",
        "tie": f"{_TIE} Arms never played come first.",
    },
    "PopularConfig": {
        "smoothing": "Plays with the mean reward of all that every arm is credited with.",
        "tie": _TIE,
    },
    "ClusterOracleConfig": {"clustering": _CLUSTERING},
}
