"""Every form of the confidence width against the explicit matrix, through the arm model that uses it."""

from __future__ import annotations

import itertools
import math
from typing import Any

import naive_reference as naive
import pytest
import torch
from small_problems import feedback, path, random_round, same_state, slate_of
from torch import Tensor

from neuclust.core import Round
from neuclust.errors import ConfigError, StateError
from neuclust.models.arm_model import ArmModel, ArmModelConfig, NetworkConfig
from neuclust.models.confidence import ConfidenceConfig
from neuclust.models.encoder import EncoderConfig
from neuclust.models.fitting import TrainingConfig
from neuclust.models.schedules import ScheduleConfig
from neuclust.randomness import stream

DIM, K = 5, 3
QUERIES = (None, [1.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0, 0.0], [1.0, 1.0, 0.0, 1.0, 1.0])


def arm_model(depth: int = 1, init: Any = "he", width: int = 8, **confidence: Any) -> ArmModel:
    """γ = 1, so that bonuses are widths; a few training steps, so that θ moves between updates."""
    return ArmModel(
        ArmModelConfig(
            EncoderConfig("raw"),
            NetworkConfig(width, depth, init),
            ConfidenceConfig(**confidence),
            ScheduleConfig("constant", gamma=1.0),
            TrainingConfig(steps=3),
        ),
        DIM,
        K,
        seed=1,
    )


def round_at(t: int, n: int = 14) -> Round:
    query = QUERIES[t % len(QUERIES)]
    return random_round(t, n, DIM, K, query=None if query is None else torch.tensor(query, dtype=torch.float64))


class Explicit:
    """Gradients of what was played, each frozen at the parameters of its own update."""

    def __init__(self, model: ArmModel, last_only: bool = False) -> None:
        self.model, self.last_only = model, last_only
        self.past: list[Tensor] = []

    def feature(self, x: Tensor) -> Tensor:
        net, config = self.model.net, self.model.config
        g = naive.gradient(net.weights, x, net.scale, net.bias)
        g = g[-net.weights[-1].numel() :] if self.last_only else g
        return g / math.sqrt(config.network.width) if config.confidence.per_width else g

    def observe(self, x: Tensor) -> None:
        self.past += [self.feature(row) for row in x]

    def matrix(self, ridge: float, like: Tensor) -> Tensor:
        return naive.covariance(torch.stack(self.past) if self.past else like.new_zeros(0, len(like)), ridge)


def compare(model: ArmModel, explicit: Explicit, updates: int) -> None:
    """Widths and log-determinant before every update and after the last."""
    ridge = model.config.confidence.ridge
    rng = stream(0, "test rewards")
    for t in range(1, updates + 2):
        round = round_at(t)
        features = [explicit.feature(z) for z in round.contexts]
        z = explicit.matrix(ridge, features[0])
        expected = torch.tensor([naive.width(z, g) for g in features], dtype=torch.float64)
        torch.testing.assert_close(model.scores(round).bonuses, expected, rtol=0, atol=1e-8)
        assert model.confidence.logdet == pytest.approx(naive.logdet(z, ridge), abs=1e-8)
        played = slate_of(*rng.permutation(14)[:K].tolist())
        explicit.observe(round.contexts[played.positions])
        model.observe(round, played, feedback(rng.integers(2, size=K).astype(float).tolist(), math.nan))
        model.train()


@pytest.mark.parametrize("ridge", [0.3, 3.0])
@pytest.mark.parametrize("init", ["he", "torch-default"])  # without and with biases
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    ("solver", "regions"), list(itertools.product(["primal", "dual"], ["always", "never", "auto"]))
)
def test_exact_widths_equal_the_explicit_inverse(
    solver: str, regions: str, depth: int, init: str, ridge: float
) -> None:
    model = arm_model(depth, init, solver=solver, regions=regions, ridge=ridge, refresh=4)
    compare(model, Explicit(model), updates=6)


@pytest.mark.parametrize("init", ["he", "torch-default"])
@pytest.mark.parametrize("regions", ["always", "never", "auto"])
@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_exact_widths_are_as_exact_without_compiled_loops(solver: str, regions: str, init: str) -> None:
    model = arm_model(1, init, solver=solver, regions=regions, ridge=0.3, refresh=4)
    with path("library"):
        compare(model, Explicit(model), updates=6)


@pytest.mark.parametrize("refresh", [1, 2, 7, 1000])
@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_exact_widths_stay_exact_over_many_updates_and_refreshes(solver: str, refresh: int) -> None:
    model = arm_model(1, "mirrored", width=6, solver=solver, ridge=0.3, refresh=refresh)
    compare(model, Explicit(model), updates=40)


def test_a_refresh_removes_rounding_that_piled_up() -> None:
    """An inverse that drifted by a percent is exact again after the next refactorisation, and only then."""
    model = arm_model(1, "mirrored", solver="primal", refresh=4)
    explicit, gaps = Explicit(model), []
    for t in range(1, 6):
        played = slate_of(0, 1, 2)
        explicit.observe(round_at(t).contexts[played.positions])
        model.observe(round_at(t), played, feedback([1.0, 0.0, 1.0], math.nan))
        if t == 1:
            state = model.confidence.state_dict()
            model.confidence.load_state_dict({**state, "inverse": 1.01 * state["inverse"]})
        features = [explicit.feature(z) for z in round_at(4).contexts]
        z = explicit.matrix(1.0, features[0])
        expected = torch.tensor([naive.width(z, g) for g in features], dtype=torch.float64)
        gaps.append(float((model.scores(round_at(4)).bonuses - expected).abs().max()))
    assert min(gaps[:3]) > 1e-4
    assert max(gaps[3:]) < 1e-10


@pytest.mark.parametrize("per_width", [True, False])
@pytest.mark.parametrize("init", ["he", "torch-default"])
@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_last_layer_widths_equal_their_own_explicit_inverse(solver: str, init: str, per_width: bool) -> None:
    model = arm_model(2, init, form="last-layer", solver=solver, ridge=0.3, refresh=3, per_width=per_width)
    compare(model, Explicit(model, last_only=True), updates=6)


@pytest.mark.parametrize("per_width", [True, False])
@pytest.mark.parametrize("init", ["he", "torch-default"])
@pytest.mark.parametrize("depth", [1, 2])
def test_diagonal_widths_equal_the_elementwise_formula(depth: int, init: str, per_width: bool) -> None:
    model = arm_model(depth, init, form="diagonal", ridge=0.3, per_width=per_width)

    class Diagonal(Explicit):
        def matrix(self, ridge: float, like: Tensor) -> Tensor:
            return torch.diag(torch.diagonal(super().matrix(ridge, like)))

    compare(model, Diagonal(model), updates=6)


def test_many_arms_in_few_regions_and_few_arms_in_many_give_the_same_widths() -> None:
    """`auto` changes its way with the number of arms; the widths of the shared arms must not notice."""
    model = arm_model(1, "mirrored", solver="primal")
    compare(model, Explicit(model), updates=3)
    many = random_round(9, 400, DIM, K, query=torch.tensor(QUERIES[1], dtype=torch.float64))
    few = Round(9, many.arm_ids[:4], many.profiles[:4], many.query, K)
    torch.testing.assert_close(model.scores(many).bonuses[:4], model.scores(few).bonuses, rtol=0, atol=1e-11)


def test_equal_contexts_have_exactly_equal_scores() -> None:
    round = random_round(1, 12, DIM, K)
    twins = Round(1, torch.arange(24), torch.cat([round.profiles, round.profiles]), None, K)
    scores = arm_model(2).scores(twins)
    assert torch.equal(scores.optimistic[:12], scores.optimistic[12:])


def test_an_arm_without_overlap_has_no_mean_and_no_width() -> None:
    round = random_round(1, 6, DIM, K)
    round.profiles[2] = 0.0
    scores = arm_model(2).scores(round)
    assert float(scores.means[2]) == float(scores.bonuses[2]) == 0
    assert float(scores.bonuses.sum()) > 0


@pytest.mark.parametrize(("dim", "solver"), [(99, "primal"), (103, "dual")])  # p = 2000 and 2080
def test_auto_takes_the_dual_for_large_nets(dim: int, solver: str) -> None:
    config = ArmModelConfig(network=NetworkConfig(20, 1, "he"), confidence=ConfidenceConfig(solver="auto"))
    confidence: Any = ArmModel(config, dim, K, seed=0).confidence
    assert confidence.solver == solver


@pytest.mark.parametrize("change", [{"ridge": 0.0}, {"ridge": -1.0}, {"ridge": math.nan}, {"refresh": 0}])
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"ConfidenceConfig|expected a finite number"):
        ConfidenceConfig(**change)


@pytest.mark.parametrize("saved_after", [4, 8, 12, 20])
@pytest.mark.parametrize(
    ("form", "solver"), [("full", "primal"), ("full", "dual"), ("diagonal", "auto"), ("last-layer", "dual")]
)
def test_a_loaded_covariance_continues_bit_for_bit(form: str, solver: str, saved_after: int) -> None:
    straight, again = (arm_model(2, form=form, solver=solver, refresh=5) for _ in range(2))
    for t in range(1, saved_after + 8):
        if t == saved_after:
            again.load_state_dict(straight.state_dict())
        for model in (straight, again) if t >= saved_after else (straight,):
            model.observe(round_at(t), slate_of(0, 4, 2), feedback([1.0, 0.0, 1.0], math.nan))
            model.train()
    assert torch.equal(again.scores(round_at(30)).bonuses, straight.scores(round_at(30)).bonuses)
    assert again.confidence.logdet == straight.confidence.logdet


@pytest.mark.parametrize("form", ["full", "diagonal"])
def test_gradients_that_cannot_be_squared_are_refused_and_change_nothing(form: str) -> None:
    model = arm_model(form=form)
    huge = Round(1, torch.arange(4), torch.full((4, DIM), 1e200, dtype=torch.float64), None, K)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(StateError, match="scale"):
        model.observe(huge, slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert same_state(before, model.state_dict())


@pytest.mark.parametrize("saved_after", [9, 10, 13])
def test_bounds_are_made_of_the_same_past_after_loading(saved_after: int) -> None:
    """Whether or not somebody asked for them before: the directions explored follow from what was learned alone."""
    straight, again = (arm_model(width=32, solver="primal", ridge=0.7) for _ in range(2))
    for t in range(1, saved_after + 1):
        straight.observe(round_at(t), slate_of(0, 4, 2), feedback([1.0, 0.0, 1.0], math.nan))
        straight.train()
        if t == saved_after - 1:
            basis_of(straight)
    again.load_state_dict(straight.state_dict())
    assert "confidence.earlier" in straight.state_dict()
    assert torch.equal(basis_of(again), basis_of(straight))


def basis_of(model: ArmModel) -> Tensor:
    confidence: Any = model.confidence
    basis = confidence._covariance._basis()
    assert isinstance(basis, Tensor)
    return basis


@pytest.mark.parametrize(
    ("solver", "change"),
    [
        ("primal", {"earlier_updates": torch.tensor(99)}),
        ("primal", {"matrix": -torch.eye(192, dtype=torch.float64)}),
        ("primal", {"updates": torch.tensor(-1)}),
        ("primal", {"logdet": torch.tensor(math.nan, dtype=torch.float64)}),
        ("dual", {"count": torch.tensor(31)}),
        ("dual", {"count": torch.tensor(1000)}),
        ("dual", {"factor": torch.zeros(64, 64, dtype=torch.float64)}),
        ("dual", {"factor": torch.eye(64, dtype=torch.float64)[:63]}),
        ("dual", {"input.0": torch.zeros(30, 4, dtype=torch.float64)}),
    ],
)
def test_a_covariance_that_cannot_be_is_refused(solver: str, change: dict[str, Tensor]) -> None:
    straight, again = (arm_model(width=32, solver=solver) for _ in range(2))
    for t in range(1, 11):
        straight.observe(round_at(t), slate_of(0, 4, 2), feedback([1.0, 0.0, 1.0], math.nan))
    state = straight.confidence.state_dict()
    assert change.keys() <= state.keys()
    with pytest.raises(StateError, match="expected"):
        again.confidence.load_state_dict(state | change)
