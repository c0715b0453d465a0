"""The pieces of the device engine against plain references, with ridges other than 1."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neuclust.experiment.engines.device import fused
from neuclust.experiment.engines.device.covariance import DualBatch, PrimalBatch, whitened
from neuclust.experiment.engines.device.dealer import filled_up, representatives
from neuclust.experiment.engines.device.engine import bucket, top_of_table
from neuclust.experiment.engines.device.networks import ArmLoss, SlateLoss, first_alike
from neuclust.kernels.monotone import MonotoneNetwork, slate_gradient_norms, slate_gradients
from neuclust.kernels.network import Factors, Network, flatten, layer_factors, squared_norms
from neuclust.kernels.ranking import sort_positions
from neuclust.kernels.training import Parameters, Steps, arm_gradients, descend, lifeless
from neuclust.randomness import stream
from neuclust.slates.slate_model import SlateModelConfig

RUNS, WIDTH, DIM = 2, 4, 5


def draw(*shape: int, t: int = 0) -> Tensor:
    return torch.from_numpy(stream(3, "batched parts", t).standard_normal(shape))


def some_factors(rows: int, columns: Tensor, t: int) -> Factors:
    inputs = draw(RUNS, rows, len(columns), t=t), draw(RUNS, rows, WIDTH, t=t + 1)
    return Factors(inputs, (draw(RUNS, rows, WIDTH, t=t + 2), torch.full((RUNS, rows, 1), 0.7, dtype=torch.float64)))


def whole(factors: Factors, columns: Tensor) -> Tensor:
    """ĝ on all coordinates, (R, n, p)."""
    inputs = torch.zeros(*factors.inputs[0].shape[:2], DIM, dtype=torch.float64)
    inputs[:, :, columns] = factors.inputs[0]
    return flatten(Factors((inputs, factors.inputs[1]), factors.deltas))


def covariance(form: str, ridge: Tensor) -> PrimalBatch | DualBatch:
    return DualBatch(ridge, WIDTH, DIM, 60) if form == "dual" else PrimalBatch(ridge, WIDTH, DIM, 4)


@pytest.mark.parametrize("form", ["primal", "refreshed", "dual"])
def test_widths_of_runs_equal_the_explicit_inverse(form: str) -> None:
    ridge = torch.tensor([0.3, 2.0], dtype=torch.float64)
    kept = covariance("dual" if form == "dual" else "primal", ridge)
    size = WIDTH * DIM + WIDTH
    matrix = ridge.view(-1, 1, 1) * torch.eye(size, dtype=torch.float64)
    for t in range(1, 11):
        columns = torch.tensor([0, 2, 3] if t % 2 else [1, 2])
        played = some_factors(3, columns, 10 * t)
        kept.observe(played, columns)
        if form == "refreshed":
            kept.refresh(t)
        matrix = matrix + whole(played, columns).mT @ whole(played, columns)
    columns = torch.tensor([0, 1, 4])
    asked = some_factors(7, columns, 500)
    g = whole(asked, columns)
    torch.testing.assert_close(
        kept.squares(asked, columns), ((g @ torch.linalg.inv(matrix)) * g).sum(-1), rtol=1e-9, atol=1e-12
    )
    torch.testing.assert_close(kept.logdet, torch.logdet(matrix) - size * torch.log(ridge))
    assert not bool(kept.stale.any())


def test_a_refresh_forgets_rounding() -> None:
    kept, columns = PrimalBatch(torch.tensor([0.3, 2.0]).double(), WIDTH, DIM, 4), torch.arange(DIM)
    kept.observe(some_factors(3, columns, 10), columns)
    asked = some_factors(7, columns, 500)
    before = kept.squares(asked, columns)
    kept._inverse += 0.01  # as if errors had piled up
    kept.refresh(5)
    assert not torch.allclose(kept.squares(asked, columns), before)
    kept.refresh(8)
    torch.testing.assert_close(kept.squares(asked, columns), before)


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_an_update_that_loses_precision_is_repeated_for_its_run(form: str) -> None:
    """One run has gradients of 1e9 beside a ridge of 1: its widths come from a sound factorisation."""
    columns, ridge = torch.arange(DIM), torch.ones(RUNS, dtype=torch.float64)
    kept, calm = covariance(form, ridge), covariance(form, ridge)
    huge, marked = torch.tensor([1e9, 1.0]).double().view(-1, 1, 1), torch.zeros(RUNS, dtype=torch.bool)
    for t in range(1, 4):
        plain = some_factors(3, columns, 10 * t)
        if t == 2:
            plain = plain.rows(0, 1)  # the same gradient three times, which leaves nothing but the ridge
            plain = Factors(
                *(tuple(part.expand(-1, 3, -1) for part in parts) for parts in (plain.inputs, plain.deltas))
            )
        calm.observe(plain, columns)
        kept.observe(Factors(plain.inputs, tuple(huge * d for d in plain.deltas)), columns)
        marked |= kept.stale
        kept.mend()
        assert not bool(kept.stale.any())
    assert marked.tolist() == [True, False]
    asked = some_factors(7, columns, 500)
    found = kept.squares(asked, columns)
    assert bool(torch.isfinite(found).all())
    assert float(found[0].min()) > -1e-6
    torch.testing.assert_close(found[1], calm.squares(asked, columns)[1], rtol=1e-9, atol=1e-12)


def test_elimination_is_a_cholesky_solve() -> None:
    half = draw(RUNS, 5, 8)
    core, rows = half @ half.mT, draw(RUNS, 5, 6, t=1)
    found, fine, logdet = whitened(core, rows)
    assert bool(fine.all())
    torch.testing.assert_close(logdet, torch.logdet(core))
    wanted = torch.linalg.solve_triangular(torch.linalg.cholesky(core), rows, upper=False)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)
    assert not bool(whitened(-core, rows)[1].any())


def arm_loss(room: int, filled: int, device: torch.device) -> ArmLoss:
    """A history of random plays, with weights for the first `filled` rows."""
    net = Network((draw(RUNS, WIDTH, DIM).to(device), draw(RUNS, 1, WIDTH).to(device)), 1.7)
    loss = ArmLoss(net, room)
    contexts, rewards = draw(RUNS, room, DIM).to(device), draw(RUNS, room, t=1).to(device)
    loss.write(torch.arange(room, device=device), contexts, torch.arange(DIM, device=device), rewards)
    loss.weight[:, :filled] = draw(RUNS, filled, t=2).abs().to(device) / filled
    return loss


def test_gradients_and_curvature_of_runs_equal_the_kernels() -> None:
    loss, contexts = arm_loss(30, 20, torch.device("cpu")), draw(RUNS, 30, DIM)
    first, last = draw(RUNS, WIDTH, DIM, t=3), draw(RUNS, 1, WIDTH, t=4)
    slopes, curvature = loss.gradient((first, last), 25), loss.curvature((first, last), 25)
    for run in range(RUNS):
        net, x = Network((first[run], last[run]), 1.7), contexts[run, :20]
        data = (x, loss.target[run, :20], loss.weight[run, :20])
        for mine, theirs in zip(slopes, arm_gradients(net, *data), strict=True):
            torch.testing.assert_close(mine[run], theirs)
        torch.testing.assert_close(curvature[run], (data[2] * squared_norms(layer_factors(net, x))).sum())


def test_a_lifeless_network_is_found_among_the_rows_that_are_filled() -> None:
    loss, alive = (
        ArmLoss(Network((torch.zeros(3, WIDTH, DIM).double(), torch.zeros(3, 1, WIDTH).double()), 1.0), 90),
        [1],
    )
    contexts = draw(1, 90, DIM, t=7).abs().expand(3, -1, -1)
    rewards = torch.zeros(3, 90, dtype=torch.float64)
    rewards[:, ::3] = 1.0
    rewards[2] = 1.0  # the same for all
    contexts = torch.cat([contexts[:, :45], contexts[:, :45]], 1)  # every context twice
    loss.write(torch.arange(80), contexts[:, :80], torch.arange(DIM), rewards[:, :80])
    first = torch.stack([-torch.ones(WIDTH, DIM), torch.ones(WIDTH, DIM), -torch.ones(WIDTH, DIM)]).double()
    parameters: Parameters = (first, torch.ones(3, 1, WIDTH).double())
    for filled in (2, 50, 80):
        found = loss.unresponsive(parameters, torch.tensor([filled])).tolist()
        assert found == [run not in alive for run in range(3)]
    distinct, means = loss.distinct(0, 80)
    assert torch.equal(distinct, contexts[0, :45])
    assert means[0] == (rewards[0, 0] + rewards[0, 45]) / 2
    assert lifeless(loss.net((first[0], parameters[1][0])), distinct, means)
    assert not lifeless(loss.net((first[2], parameters[1][2])), *loss.distinct(2, 80))


@pytest.mark.parametrize("relu_out", [False, True])
@pytest.mark.parametrize("transform", ["sigmoid", "softplus"])
def test_slate_gradients_of_runs_equal_the_kernels(transform: str, relu_out: bool) -> None:
    shapes = ((WIDTH, 3), (1, WIDTH), (WIDTH,), (1,))
    parameters = tuple(draw(RUNS, *s, t=5 + i) for i, s in enumerate(shapes))
    nets = MonotoneNetwork(parameters[:2], parameters[2:], (0.4, 0.3), transform, relu_out)
    loss = SlateLoss(SlateModelConfig(relu_input=False, sort_input=False), nets, 30)
    rewards = draw(RUNS, 30, 3)
    loss.read(rewards)
    loss.target.copy_(draw(RUNS, 30, t=1))
    loss.weight[:, :20] = draw(RUNS, 20, t=2).abs()
    slopes, curvature = loss.gradient(parameters, 25), loss.curvature(parameters, 25)
    for run in range(RUNS):
        net = nets.with_parameters(tuple(p[run] for p in parameters))
        inputs, weight = rewards[run, :20], loss.weight[run, :20]
        for mine, theirs in zip(slopes, slate_gradients(net, inputs, loss.target[run, :20], weight), strict=True):
            torch.testing.assert_close(mine[run], theirs)
        torch.testing.assert_close(curvature[run], (weight * slate_gradient_norms(net, inputs)).sum())


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, -0.0, 0.5])), min_size=1, max_size=40))
def test_equal_rows_have_the_first_of_them(rows: list[tuple[int, float]]) -> None:
    found = representatives(torch.tensor(rows, dtype=torch.float64)).tolist()
    assert found == [rows.index(row) for row in rows]


def test_few_equal_rows_have_the_first_of_their_run() -> None:
    rows = torch.tensor([[[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]], [[3.0, 3.0], [3.0, 3.0], [1.0, 2.0]]])
    assert first_alike(rows).tolist() == [[0, 1, 0], [0, 0, 2]]


@given(st.lists(st.integers(0, 3), min_size=6, max_size=30), st.integers(0, 5))
def test_top_of_a_table_is_the_sorted_top(values: list[int], shift: int) -> None:
    scores = torch.tensor([values, values[::-1]], dtype=torch.float64)
    members = [list(range(0, len(values), 2)), list(range(1, len(values), 2))]
    longest = len(members[0]) + shift
    table = torch.tensor([row + [-1] * (longest - len(row)) for row in members])
    found = top_of_table(scores, table, 3)
    for run in range(2):
        for c, row in enumerate(members):
            order = sort_positions(scores[run][row], torch.arange(len(row)))[:3]
            assert found[run, c].tolist() == [row[i] for i in order]


@given(st.integers(1, 400), st.integers(1, 400))
def test_buckets_hold_what_they_must(rows: int, extra: int) -> None:
    size = bucket(rows, rows + extra, 8)
    assert rows <= size <= rows + extra
    assert len({bucket(n, 5000, 64) for n in range(1, 5001)}) < 16


@given(st.sets(st.integers(0, 39), min_size=1))
def test_idle_columns_fill_up(active: set[int]) -> None:
    found = filled_up(torch.tensor(sorted(active)), 40).tolist()
    assert found == sorted(set(found))
    assert active <= set(found)
    assert len(found) < len(active) + 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; this machine has none")
def test_fused_steps_equal_library_steps() -> None:
    device = torch.device("cuda")
    loss = arm_loss(90, 70, device)
    parameters: Parameters = (draw(RUNS, WIDTH, DIM, t=3).to(device), draw(RUNS, 1, WIDTH, t=4).to(device))
    step, pull = torch.tensor([0.01, 0.02]).double().to(device), torch.tensor([0.3, 0.1]).double().to(device)
    steps = Steps(3, step, pull, tuple(p.clone() for p in parameters))
    moved = tuple(p.clone() for p in parameters)
    assert fused.serves_arms(parameters)
    assert loss.steps_at_once(moved, 80, steps)
    for mine, theirs in zip(moved, descend(parameters, lambda p, _: loss.gradient(p, 80), steps), strict=True):
        torch.testing.assert_close(mine, theirs)
