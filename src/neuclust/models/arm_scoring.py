"""Means and bonuses of a round's arms: one width per distinct context, one small matrix per activation region, or
bounds that become exact where arms can still win (docs/decisions/0012-selection-cost.md); all give the same slate."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neuclust.core import Round
from neuclust.kernels import jit
from neuclust.kernels import rows as sparse
from neuclust.kernels.columns import Columns, forward_columns, widths_columns
from neuclust.kernels.jit import Floats, Integers
from neuclust.kernels.network import Network, augment, layer_factors, restrict, scaled
from neuclust.kernels.pruning import SLACK, Bounds
from neuclust.kernels.regions import find_regions
from neuclust.kernels.rows import Rows, forward_norms
from neuclust.models.confidence import DiagonalConfidence, FullConfidence, feature_scale
from neuclust.models.encoder import Encoder, distinct

Confidence = FullConfidence | DiagonalConfidence

MANY = 8  # active columns above which activation regions are as many as arms
MANY_ARMS = 1024  # from which compiled loops by column pay
HEAVY_WIDTH = 1e6  # multiplications of one width from which even few regions are expensive
HEAVY_ROUND = 2e7  # multiplications of all widths from which bounds pay: about a millisecond


class ArmScores(NamedTuple):
    """f, γw and v = f + γw of every arm of a round, each (n,)."""

    means: Tensor
    bonuses: Tensor

    @property
    def optimistic(self) -> Tensor:
        return self.means + self.bonuses


@dataclass(slots=True)
class Choice:
    """How a round's widths were found, and for how many arms, distinct contexts and active columns."""

    way: Literal["regions", "direct", "pruned"]
    arms: int
    contexts: int
    columns: int
    widths: int  # computed: q per region, one per context, or only those that mattered


@dataclass(slots=True)
class _Entry:
    """One tensor of profiles, as it was when last seen, and what was computed from it."""

    profiles: Tensor
    version: int
    columns: Floats | None = None
    distinct: tuple[Rows, Integers] | None = None
    whole: tuple[float, Rows] | None = None  # ρ and distinct profiles / ρ


class ProfileCache:
    """Profiles by column, and distinct ones as sparse rows: cached when the same unchanged tensor is shown again, since
    profiles of one round only would never be used again. A thread looks its one entry up once, so that others cannot
    mix theirs into it."""

    def __init__(self) -> None:
        self._last: _Entry | None = None

    def columns(self, round: Round, rho: float) -> Columns:
        """z/ρ by active column; CPU, float64."""
        entry = self._again(round.profiles)
        active = round.active.numpy()
        query = np.ones(len(active)) if round.query is None else round.query.numpy()[active].astype(np.float64)
        if entry is None:
            own = np.ascontiguousarray(round.profiles.numpy()[:, active].T)
            return Columns(own, np.arange(len(active)), query, rho)
        if entry.columns is None:
            entry.columns = np.ascontiguousarray(round.profiles.numpy().T)
        return Columns(entry.columns, active, query, rho)

    def contexts(self, round: Round, rho: float) -> tuple[Rows, Integers]:
        """Distinct z/ρ on the active columns, and every arm's number among them (n,); CPU, float64."""
        found = self.contexts_again(round, rho)
        if found is None:
            return sparse.distinct(_masked(sparse.sparse_rows(round.profiles.contiguous().numpy()), round, rho))
        return found

    def contexts_again(self, round: Round, rho: float) -> tuple[Rows, Integers] | None:
        """The same for profiles that were shown before; None for new ones."""
        entry = self._again(round.profiles)
        if entry is None:
            return None
        if entry.distinct is None:
            entry.distinct = sparse.distinct(sparse.sparse_rows(round.profiles.contiguous().numpy()))
        profiles, group = entry.distinct
        if round.query is None:  # nothing masked: distinct profiles stay distinct
            whole = entry.whole
            if whole is None or whole[0] != rho:
                whole = entry.whole = (rho, _masked(profiles, round, rho))
            return whole[1], group
        contexts, merged = sparse.distinct(_masked(profiles, round, rho))
        return contexts, merged[group]

    def _again(self, profiles: Tensor) -> _Entry | None:
        """The entry of these profiles; None where they are new, or changed since."""
        version = -1 if profiles.is_inference() else profiles._version  # torch counts no changes in inference mode
        entry = self._last
        if entry is not None and entry.profiles is profiles and entry.version == version >= 0:
            return entry
        self._last = _Entry(profiles, version)
        return None


def _masked(profiles: Rows, round: Round, rho: float) -> Rows:
    if round.query is None:
        return replace(profiles, value=profiles.value / rho)
    active = round.active
    return sparse.masked(profiles, active.numpy(), round.query[active].to(torch.float64).numpy(), rho)


class ArmScorer:
    """Scores arms under a net and its confidence; keeps what it made of profiles that are shown again."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._cache = ProfileCache()
        self.last_choice: Choice | None = None

    def scores(self, net: Network, confidence: Confidence, round: Round, gamma: float) -> ArmScores:
        """Means and bonuses of all arms; equal contexts are exactly equal."""
        full = self._exact_covariance(net, confidence, round)
        found = None if full is None else self._by_columns(net, full, round, gamma)
        return found if found is not None else self._by_rows(net, confidence, round, gamma)

    def _by_rows(self, net: Network, confidence: Confidence, round: Round, gamma: float) -> ArmScores:
        x, columns, group = distinct(self._encoder, round)
        if net.bias:
            columns = torch.cat([columns, columns.new_tensor([self._encoder.dim])])
        net = restrict(net, columns)
        x = augment(net, x)
        regions = find_regions(net, x)
        rows, q, count = len(x), x.shape[1], len(regions.first)
        shared = confidence.by_regions(rows, q, count)
        self.last_choice = Choice("regions" if shared else "direct", len(group), rows, q, q * count if shared else rows)
        widths = confidence.widths(net, x, regions, columns)
        return ArmScores(regions.means[group], gamma * widths[group])

    def _by_columns(self, net: Network, full: FullConfidence, round: Round, gamma: float) -> ArmScores | None:
        """Many arms with few active columns in few activation regions; None where they are not."""
        columns = round.active
        if len(columns) > MANY or len(round.arm_ids) < MANY_ARMS:
            return None
        net, x = restrict(net, columns), self._cache.columns(round, self._divisor(round))
        means, first, region = forward_columns(x, *_layers(net))
        if not full.by_regions(len(x), len(columns), len(first)):
            return None
        forms = full.region_forms(net, torch.from_numpy(x.at(first)), columns)
        widths = widths_columns(x, forms.numpy(), region)
        self.last_choice = Choice("regions", len(x), len(x), len(columns), len(columns) * len(first))
        return ArmScores(torch.from_numpy(means), torch.from_numpy(gamma * widths))

    def bounds(self, net: Network, confidence: Confidence, round: Round, gamma: float) -> Bounds | None:
        """Means and upper bounds that become exact where it matters; None where `scores` is less work."""
        full = self._exact_covariance(net, confidence, round)
        if full is None or not pruning_pays(full, len(round.arm_ids), len(round.active)):
            return None
        contexts, columns = self._cache.contexts(round, self._divisor(round)), round.active
        bounds, self.last_choice = score_bounds(restrict(net, columns), contexts, full, columns, gamma)
        return bounds

    def _exact_covariance(self, net: Network, confidence: Confidence, round: Round) -> FullConfidence | None:
        """The covariance of one hidden layer without biases under an encoder that keeps zeros; None for others."""
        encoder = self._encoder.config
        plain = encoder.kind in ("raw", "scale") and not encoder.duplicate
        simple = len(net.weights) == 2 and not net.bias and confidence.config.form == "full"
        served = jit.serves(round.profiles, net.weights[0])
        return confidence if plain and simple and served and isinstance(confidence, FullConfidence) else None

    def _divisor(self, round: Round) -> float:
        return self._encoder.scale_of(round) if self._encoder.config.kind == "scale" else 1.0


def pruning_pays(confidence: FullConfidence, arms: int, columns: int) -> bool:
    """The cost model: few columns mean few regions, so that only expensive widths are worth bounding there."""
    if confidence.config.pruning != "auto":
        return confidence.config.pruning == "on"
    work = confidence.work(columns)
    return work >= HEAVY_WIDTH if columns <= MANY else arms * work >= HEAVY_ROUND


def score_bounds(
    net: Network, distinct_contexts: tuple[Rows, Integers], confidence: FullConfidence, columns: Tensor, gamma: float
) -> tuple[Bounds, Choice]:
    """f and f + γ‖ĝ‖/√λ ≥ v of distinct encoded contexts and every arm's row (n,), for a bias-free net with one hidden
    layer on `columns`; the choice counts the widths as they are computed."""
    contexts, group = distinct_contexts
    means, norms = forward_norms(contexts, *_layers(net))
    scale = feature_scale(confidence.config, net)
    ceiling = gamma * scale * np.sqrt(norms / confidence.config.ridge) * (1 + SLACK)

    def tighten(rows: Integers, floor: float, early: bool = False) -> None:
        factors = scaled(layer_factors(net, torch.from_numpy(contexts.dense(rows))), scale)
        # a bound that is not made exact must end below the floor after its own slack, which grows with |f|
        margin = SLACK * (abs(floor) + np.abs(means[rows]) + 1) if np.isfinite(floor) else 0.0
        cutoff = torch.from_numpy((floor - margin - means[rows]) / gamma)
        width, exact = confidence.narrow(factors, columns, cutoff, early)
        bounds.bonuses[rows] = gamma * width.numpy() * np.where(exact.numpy(), 1.0, 1 + SLACK)
        bounds.upper[rows] = means[rows] + bounds.bonuses[rows]
        bounds.exact[rows] = exact.numpy()
        choice.widths += int(exact.sum())

    known = np.full(len(means), gamma == 0)
    bounds = Bounds(means, ceiling, means + ceiling, known, known.copy(), group, tighten)
    choice = Choice("pruned", len(group), len(means), len(columns), 0)
    return bounds, choice


def _layers(net: Network) -> tuple[Floats, Floats, float]:
    """W_0ᵀ (q, m), W_1 (m,) and the output scale of a net with one hidden layer, as compiled loops read them."""
    return np.ascontiguousarray(net.weights[0].numpy().T), net.weights[1][0].numpy(), float(net.scale)
