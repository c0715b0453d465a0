"""What policies share: the state made of the attributes a policy names."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_problems import feedback, slate_of, small_environment
from torch import Tensor

from neuclust.errors import DataError, StateError
from neuclust.models.encoder import Encoder, EncoderConfig
from neuclust.models.mean_rewards import KeyedMeans
from neuclust.models.state import load_saved_state, saved_state
from neuclust.policies.wiring import check_update


class Sketch:
    """One attribute of every kind that can be saved."""

    saved = ("seed", "updates", "matrix", "rho", "means", "absent")

    def __init__(self) -> None:
        self.seed, self.updates, self.dim, self.slate_size = -3, 0, 6, 3
        self.matrix = torch.eye(2, dtype=torch.float64)
        self.encoder = Encoder(EncoderConfig("scale", rho=None), 2, even=False)
        self.means = KeyedMeans()
        self.absent: Any = None


def learned() -> Sketch:
    sketch = Sketch()
    sketch.seed, sketch.updates, sketch.encoder.rho = 11, 4, 2.5
    sketch.matrix[0, 1] = 7.0
    sketch.means.observe(torch.tensor([5, 9]), torch.tensor([1.0, 0.0], dtype=torch.float64))
    return sketch


def test_a_state_comes_back_and_parts_that_are_none_have_no_entries() -> None:
    state, again = saved_state(learned()), Sketch()
    assert set(state) == {"seed", "updates", "matrix", "rho", "means.keys", "means.counts", "means.sums"}
    load_saved_state(again, state)
    assert (again.seed, again.updates, again.encoder.rho, float(again.matrix[0, 1])) == (11, 4, 2.5, 7.0)
    assert all(
        torch.equal(left, right) for left, right in zip(saved_state(again).values(), state.values(), strict=True)
    )


def test_a_state_is_a_copy() -> None:
    sketch = learned()
    state = saved_state(sketch)
    sketch.matrix.zero_()
    assert float(state["matrix"][0, 1]) == 7.0


@pytest.mark.parametrize(
    "change",
    [
        {"matrix": torch.eye(3, dtype=torch.float64)},
        {"updates": torch.tensor(-1)},
        {"seed": torch.tensor(0.5)},
        {"rho": torch.tensor(-1.0, dtype=torch.float64)},
        {"means.counts": torch.tensor([0.0, 1.0], dtype=torch.float64)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_cannot_have_been_saved_is_refused(change: dict[str, Tensor]) -> None:
    with pytest.raises(StateError, match="saved state: expected"):
        load_saved_state(Sketch(), saved_state(learned()) | change)


def test_an_update_is_checked_as_rounds_and_feedback_are() -> None:
    round = small_environment().round(1)
    check_update(Sketch(), round, slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    with pytest.raises(DataError, match="distinct positions"):
        check_update(Sketch(), round, slate_of(0, 1, 1), feedback([1.0, 0.0, 1.0], 1.0))
    wider = Sketch()
    wider.dim = 7
    with pytest.raises(DataError, match="profiles with 7 features"):
        check_update(wider, round, slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
