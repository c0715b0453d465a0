"""The paper in plain float64 Python, sharing nothing with the code it checks: slow, short, one line a step.

Gradients come from autograd one arm at a time, Z is an explicit matrix inverted directly, training is autograd
gradient descent on the raw list of observations, clusters are visited in a Python loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from sklearn.cluster import KMeans
from torch import Tensor

Parameters = tuple[Tensor, ...]


# --- the arm network ------------------------------------------------------------------------------------------


def forward(weights: Sequence[Tensor], x: Tensor, scale: float, bias: bool = False) -> Tensor:
    """f(x) = s W_L σ(W_{L−1} … σ(W_0 x)), x (d',) or (n, d'); with biases, each as the last column of its W."""
    h = x
    for weight in weights[:-1]:
        h = torch.relu(_affine(weight, h, bias))
    return scale * _affine(weights[-1], h, bias).squeeze(-1)


def _affine(weight: Tensor, h: Tensor, bias: bool) -> Tensor:
    return h @ weight[:, :-1].T + weight[:, -1] if bias else h @ weight.T


def gradient(weights: Sequence[Tensor], x: Tensor, scale: float, bias: bool = False) -> Tensor:
    """∇_θ f of one sample x (d',), flattened: (p,)."""
    leaves = [weight.clone().requires_grad_() for weight in weights]
    return flat(torch.autograd.grad(forward(leaves, x, scale, bias), leaves))


def flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


# --- covariance, widths, order --------------------------------------------------------------------------------


def covariance(gradients: Tensor, ridge: float) -> Tensor:
    """Z = λI + Σ ĝĝᵀ for gradients (n, p)."""
    z = ridge * torch.eye(gradients.shape[1], dtype=torch.float64)
    for g in gradients:
        z = z + torch.outer(g, g)
    return z


def width(z: Tensor, g: Tensor) -> float:
    """√(ĝᵀ Z⁻¹ ĝ), by a direct inverse."""
    return math.sqrt(float(g @ torch.linalg.inv(z) @ g))


def logdet(z: Tensor, ridge: float) -> float:
    """log det Z / det λI."""
    return float(torch.linalg.slogdet(z).logabsdet) - len(z) * math.log(ridge)


def top(scores: Sequence[float], ids: Sequence[int], members: Sequence[int], k: int) -> list[int]:
    """The k best of `members` by (−score, id)."""
    return sorted(members, key=lambda i: (-scores[i], ids[i]))[:k]


# --- training -------------------------------------------------------------------------------------------------


def objective(
    parameters: Parameters,
    initial: Parameters,
    predict: Callable[..., Tensor],
    rewards: Tensor,
    width: int,
    config: Any,
) -> Tensor:
    """½ Σ (prediction − r)² + (λ m / 2) ‖θ − θ_0‖² over the raw observations, divided by n for `mean`."""
    n = len(rewards)
    pull = config.ridge * (width if config.pull_by_width else 1) * (n if config.pull_inside_sum else 1)
    home = initial if config.anchor == "initial" else tuple(torch.zeros_like(p) for p in initial)
    error = 0.5 * config.loss_factor * ((predict(parameters) - rewards) ** 2).sum()
    distance = sum((((p - a) ** 2).sum() for p, a in zip(parameters, home, strict=True)), torch.zeros(()))
    loss: Tensor = (error + 0.5 * pull * distance) / (n if config.loss_norm == "mean" else 1)
    return loss


def automatic_step(start: Parameters, predict: Callable[..., Tensor], n: int, width: int, config: Any) -> float:
    """share / (Σ_i weight_i ‖∇ prediction_i‖² + pull), each gradient by autograd."""
    leaves = [p.clone().requires_grad_() for p in start]
    norms = 0.0
    for prediction in predict(tuple(leaves)):
        norms += float((flat(torch.autograd.grad(prediction, leaves, retain_graph=True)) ** 2).sum())
    pull = config.ridge * (width if config.pull_by_width else 1) * (n if config.pull_inside_sum else 1)
    share = 1 / n if config.loss_norm == "mean" else 1.0
    return float(config.step_share / (share * config.loss_factor * norms + share * pull + 1e-12))


def fit(
    start: Parameters,
    initial: Parameters,
    predict: Callable[..., Tensor],
    rewards: Tensor,
    width: int,
    config: Any,
    project: Callable[[Tensor, int], Tensor] = lambda p, _: p,
) -> Parameters:
    """J steps of θ ← θ − η ∇L(θ); guarded: halve η while the objective ends above its start."""
    step = config.step if config.step is not None else automatic_step(start, predict, len(rewards), width, config)
    before = float(objective(start, initial, predict, rewards, width, config))
    for _ in range(13):
        parameters = start
        for _ in range(config.steps):
            leaves = tuple(p.clone().requires_grad_() for p in parameters)
            slopes = torch.autograd.grad(objective(leaves, initial, predict, rewards, width, config), leaves)
            moved = [p.detach() - step * s for p, s in zip(leaves, slopes, strict=True)]
            parameters = tuple(project(p, i) for i, p in enumerate(moved))
        after = float(objective(parameters, initial, predict, rewards, width, config))
        if not config.guard or after <= before + 1e-12 * abs(before):
            return parameters
        step /= 2
    return start


# --- the slate network ----------------------------------------------------------------------------------------

TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": lambda x: 1 / (1 + torch.exp(-x)),
    "softplus": lambda x: torch.log(1 + torch.exp(x)),
    "exp": torch.exp,
    "square": lambda x: x * x,
    "abs": torch.abs,
}


def slate_forward(
    parameters: Sequence[Tensor], scales: Sequence[float], transform: str, rewards: Tensor, relu_out: bool = False
) -> Tensor:
    """F(r) = c_L q(Θ_L) σ(… σ(c_0 q(Θ_0) r + b_0)) + b_L; parameters are all Θ, then all b."""
    depth = len(parameters) // 2
    q, o = TRANSFORMS[transform], rewards
    for k in range(depth):
        o = o @ (scales[k] * q(parameters[k])).T + parameters[depth + k]
        o = torch.relu(o) if k < depth - 1 or relu_out else o
    return o.squeeze(-1)


# --- NeUClust -------------------------------------------------------------------------------------------------


def encode(config: Any, z: Tensor, rho: float, even: bool) -> Tensor:
    """φ(z) of one masked context (d,)."""
    if config.kind == "scale":
        z = z / rho
    elif config.kind == "unit":
        z = z / z.norm() if z.norm() > 0 else z
    elif config.kind == "lift":
        z = torch.cat([z / rho, torch.sqrt(1 - (z / rho).square().sum()).reshape(1)])
    if config.duplicate:
        return torch.cat([z, z]) / math.sqrt(2)
    return torch.cat([z, z.new_zeros(len(z) % 2)]) if even else z


class NaiveNeUClust:
    """Algorithm 2 for one configuration, starting from given θ_0 and Θ_0."""

    def __init__(self, config: Any, theta: Parameters, slate_net: Any, slate_size: int) -> None:
        self.config, self.k = config, slate_size
        self.theta = self.theta_0 = theta
        self.slate_net = slate_net  # only its scales and options are read
        self.big_theta = self.big_theta_0 = tuple(slate_net.parameters)
        self.scale, self.bias = config.arms.network.scale, config.arms.network.init == "torch-default"
        self.gradients: list[Tensor] = []
        self.observations: list[tuple[Tensor, float]] = []
        self.slates: list[tuple[list[Tensor], list[float], float]] = []
        self.rho: float | None = config.arms.encoder.rho
        self.labels: list[int] = []

    def contexts(self, round: Any) -> list[Tensor]:
        masked = [profile * round.query for profile in round.profiles]
        if self.rho is None:
            self.rho = max(float(x.norm()) for x in round.profiles) * float(round.query.abs().max())
        even = self.config.arms.network.init == "symmetric"
        return [encode(self.config.arms.encoder, z, self.rho, even) for z in masked]

    def feature(self, x: Tensor) -> Tensor:
        """ĝ = g/√m, or g."""
        m = self.config.arms.network.width
        g = gradient(self.theta, x, self.scale, self.bias)
        return g / math.sqrt(m) if self.config.arms.confidence.per_width else g

    def cluster(self, round: Any) -> None:
        c = self.config.clustering
        k_means = KMeans(c.count, n_init=c.n_init, max_iter=c.max_iter, random_state=c.seed)
        self.labels = k_means.fit_predict(round.profiles.numpy()).tolist()
        assert min(self.labels.count(c) for c in set(self.labels)) >= self.k

    def prepare(self, rewards: Tensor) -> Tensor:
        if self.config.slate.relu_input:
            rewards = torch.relu(rewards)
        return torch.sort(rewards, -1, descending=True).values if self.config.slate.sort_input else rewards

    def slate_value(self, rewards: Tensor, parameters: Parameters | None = None) -> Tensor:
        net = self.slate_net
        parameters = self.big_theta if parameters is None else parameters
        return slate_forward(parameters, net.scales, net.transform, self.prepare(rewards), net.relu_out)

    def select(self, round: Any) -> tuple[list[int], list[float], list[float], list[float]]:
        """The slate, all means, all widths, and V of every cluster."""
        if not self.labels:
            self.cluster(round)
        xs, ids, gamma = self.contexts(round), round.arm_ids.tolist(), self.config.arms.schedule.gamma
        z = covariance(torch.stack([*self.gradients]), self.ridge) if self.gradients else None
        f = [float(forward(self.theta, x, self.scale, self.bias)) for x in xs]
        if z is None:
            w = [float(self.feature(x).norm()) / math.sqrt(self.ridge) for x in xs]
        else:
            inverse = torch.linalg.inv(z)
            w = [math.sqrt(float(g @ inverse @ g)) for g in (self.feature(x) for x in xs)]
        v = [a + gamma * b for a, b in zip(f, w, strict=True)]
        slates, values = [], []
        for c in sorted(set(self.labels)):
            members = [i for i in range(len(xs)) if self.labels[i] == c]
            b_c = top(v, ids, members, self.k)
            f_c = float(self.slate_value(torch.tensor([f[i] for i in b_c], dtype=torch.float64)))
            slates.append(b_c)
            values.append(sum(v[i] for i in b_c) + self.config.slate.weight * self.k * f_c)
        return slates[values.index(max(values))], f, w, values

    @property
    def ridge(self) -> float:
        return float(self.config.arms.confidence.ridge)

    def update(self, round: Any, slate: list[int], arm_rewards: list[float], slate_reward: float) -> None:
        xs = self.contexts(round)
        self.gradients += [self.feature(xs[i]) for i in slate]
        self.observations += [(xs[i], r) for i, r in zip(slate, arm_rewards, strict=True)]
        self.slates.append(([xs[i] for i in slate], arm_rewards, slate_reward))
        self.train_arms()
        self.train_slates()

    def train_arms(self) -> None:
        inputs = torch.stack([x for x, _ in self.observations])
        rewards = torch.tensor([r for _, r in self.observations], dtype=torch.float64)

        def predict(theta: Parameters) -> Tensor:
            return forward(theta, inputs, self.scale, self.bias)

        arms = self.config.arms
        start = self.theta_0 if arms.training.start == "restart" else self.theta
        self.theta = fit(start, self.theta_0, predict, rewards, arms.network.width, arms.training)

    def train_slates(self) -> None:
        shown = [forward(self.theta, torch.stack(xs), self.scale, self.bias) for xs, _, _ in self.slates]
        if self.config.slate.train_input == "realised":
            shown = [torch.tensor(r, dtype=torch.float64) for _, r, _ in self.slates]
        inputs = torch.stack(shown)
        rewards = torch.tensor([reward for _, _, reward in self.slates], dtype=torch.float64)

        def predict(parameters: Parameters) -> Tensor:
            return self.slate_value(inputs, parameters)

        def project(parameter: Tensor, _: int) -> Tensor:
            return parameter.clamp(min=0) if self.config.slate.clamp_all else parameter

        slate = self.config.slate
        self.big_theta = fit(self.big_theta, self.big_theta_0, predict, rewards, slate.width, slate.training, project)


def one_coin_propensities(slate: list[int], greedy: list[int], arms: int, epsilon: float) -> list[float]:
    """Ratios of prefix probabilities where one coin decides between the greedy slate and one drawn evenly."""

    def prefix(length: int) -> float:
        drawn = math.prod(1 / (arms - place) for place in range(length))
        return epsilon * drawn + (1 - epsilon) * (slate[:length] == greedy[:length])

    return [prefix(place + 1) / prefix(place) for place in range(len(slate))]
