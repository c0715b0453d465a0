"""What estimators read, one row per logged slate, and what they give: an estimate and a contribution of every row."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LOGGED = ("logging", "logging_marginals")
CHANCES = (*LOGGED, "target", "target_marginals")  # padded with 1, so that ratios and products stay; others with 0
ROUNDING = 1e-9  # by which sums of chances may be above 1
BY_SLOT = (*CHANCES, "rewards", "q_hat", "v_hat", "slots")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """n logged slates of up to k slots; each estimator says what it needs of them (`catalogue.EstimatorSpec.needs`).

    Shorter slates are padded, and `slots` says which slots are real; what stands in the others is replaced so that it
    changes nothing. Refused: shapes that do not fit, NaN, logged chances outside (0, 1], others outside [0, 1].
    """

    rewards: Floats | None = None  # (n, k) of every slot
    slate_rewards: Floats | None = None  # (n,) of the slate, whatever makes it: a sum, any click, a threshold, a table
    logging: Floats | None = None  # (n, k) μ(S_j | S_1, …, S_{j−1})
    target: Floats | None = None  # (n, k) π(S_j | S_1, …, S_{j−1})
    logging_marginals: Floats | None = None  # (n, k) μ(slot j holds S_j)
    target_marginals: Floats | None = None  # (n, k) π(slot j holds S_j)
    pi_weights: Floats | None = None  # (n,) q_πᵀ Γ_μ⁺ 1_S (`evaluation.pseudo_inverse`)
    q_hat: Floats | None = None  # (n, k) a model's Σ_{i ≥ j} r_i under π, after the logged S_1, …, S_j
    v_hat: Floats | None = None  # (n, k) Σ_a π(a | S_1, …, S_{j−1}) of the same for a in slot j
    model_logged: Floats | None = None  # (n,) a model's reward of the logged slate
    model_target: Floats | None = None  # (n,) its expected reward under π
    slots: Flags | None = None  # (n, k) slots that are real; None: all

    def __post_init__(self) -> None:
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "slots"}
        arrays = {name: np.asarray(value, np.float64) for name, value in given.items() if value is not None}
        if not arrays:
            raise DataError("rows: expected rewards and chances, got nothing; give what the estimator needs")
        flags = None if self.slots is None else np.asarray(self.slots, np.bool_)
        _check_shapes(arrays, flags)
        for name, value in arrays.items():
            if flags is not None and value.ndim == 2:
                value = np.where(flags, value, float(name in CHANCES))
            _check_values(name, value)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "slots", flags)

    def of(self, name: str) -> Floats:
        """A field by name, refused where it was not given."""
        value: Floats | None = getattr(self, name)
        if value is None:
            raise DataError(f"rows: expected {name} for this estimator, got none; give it or choose another estimator")
        return value

    def __len__(self) -> int:
        arrays = (getattr(self, each.name) for each in fields(self))
        return next(len(value) for value in arrays if value is not None)

    def real(self, slots: int) -> Flags:
        """Which of so many slots are real: (n, k)."""
        return np.ones((len(self), slots), np.bool_) if self.slots is None else self.slots


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """An estimate, the contributions (n,) whose mean it is, and the weights (n,) that rewards were given.

    Contributions of self-normalised forms are linearised, estimate + w (r − estimate)/mean w: their spread over √n is
    the standard error. All are NaN where every weight is 0: then nothing in the log tells of the target.
    """

    estimate: float
    values: Floats
    weights: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats) -> "Contributions":
        """With the mean of the contributions as the estimate."""
        return cls(float(values.mean()), values, weights)


def _check_shapes(arrays: dict[str, Floats], flags: Flags | None) -> None:
    """n rows everywhere, at least one, and k slots in every array by slot."""
    shapes = {name: value.shape for name, value in arrays.items()}
    if flags is not None:
        shapes["slots"] = flags.shape
    n = next(iter(shapes.values()))[:1]
    k = next((shape[1:2] for name, shape in shapes.items() if name in BY_SLOT), ())
    for name, shape in shapes.items():
        wanted = (*n, *k) if name in BY_SLOT else n
        if shape != wanted or 0 in shape or len(wanted) != 1 + (name in BY_SLOT):
            meant = "(rows, slots)" if name in BY_SLOT else "(rows,)"
            raise DataError(f"rows: expected {name} as {meant} = {wanted}, got {shape}; pad short slates")


def _check_values(name: str, value: Floats) -> None:
    """Refuse NaN and infinity, and chances that cannot be; the first such row is named."""
    wrong = ~np.isfinite(value)
    wanted = "numbers"
    if name in CHANCES:
        low = value <= 0 if name in LOGGED else value < 0
        wrong, wanted = wrong | low | (value > 1 + ROUNDING), f"chances in {'(' if name in LOGGED else '['}0, 1]"
    if wrong.any():
        at = tuple(int(axis[0]) for axis in wrong.nonzero())
        where = f"row {at[0]}" + (f", slot {at[1] + 1}" if len(at) > 1 else "")
        raise DataError(
            f"rows: expected {name} as {wanted}, got {value[at]} in {where}; repair the log or leave it out"
        )
