"""A map of the items: their encoded profiles in two dimensions, and the cluster each belongs to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from neuclust.core import Policy
from neuclust.recommender.items.catalogue import Catalogue
from neuclust.slates.clustering import ClusterMap, nearest

MOST_POINTS = 600
MOST_FOUND = 8  # clusters of a policy that has none of its own
Matrix = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sample:
    """Some items of a catalogue of `total`: ids, codes (n,) and encoded profiles (n, d)."""

    ids: tuple[str, ...]
    codes: Codes
    profiles: Matrix
    total: int


def sampled(catalogue: Catalogue, chosen: Iterable[str] = ()) -> Sample:
    """At most 600 items: those that were chosen lately, at most half of them, and others spread evenly; a copy."""
    codes, total = catalogue.all_codes(), len(catalogue)
    if total > MOST_POINTS:
        first = catalogue.codes_of(chosen)[0][: MOST_POINTS // 2]
        others = np.setdiff1d(codes, first)
        wanted = MOST_POINTS - len(first)
        codes = np.sort(np.concatenate([first, others[np.arange(wanted) * len(others) // wanted]]))
    ids = tuple(str(catalogue.id_of(code)) for code in codes.tolist())
    return Sample(ids, codes, catalogue.profiles(codes), total)


def item_map(sample: Sample, policy: Policy | None) -> dict[str, Any]:
    """The map of a sample: `points` (item, x, y, cluster), `total` items, `clusters`, `own`, `explained`.

    `own`: the clusters are the policy's, else those of k-means. `explained`: the share of the profiles' variance that
    the map shows, None where nothing varies.
    """
    if not sample.ids:
        return {"points": [], "total": sample.total, "clusters": 0, "own": False, "explained": None}
    places, explained = _projected(sample.profiles)
    found = _own_labels(policy, sample.codes, sample.profiles)
    labels = _kmeans(sample.profiles) if found is None else found
    points = [
        {"item": item, "x": x, "y": y, "cluster": label}
        for item, (x, y), label in zip(sample.ids, places.tolist(), labels.tolist(), strict=True)
    ]
    clusters, own = len(np.unique(labels)), found is not None
    return {"points": points, "total": sample.total, "clusters": clusters, "own": own, "explained": explained}


def _projected(profiles: Matrix) -> tuple[Matrix, float | None]:
    """The first two principal components (n, 2), scaled to [−1, 1], and the share of variance they hold."""
    n = len(profiles)
    varying = profiles[:, profiles.std(0) > 0] if n > 1 else profiles[:, :0]
    if not varying.shape[1]:
        return np.zeros((n, 2)), None
    from sklearn.decomposition import PCA

    fitted = PCA(min(2, *varying.shape), svd_solver="full")
    places = np.zeros((n, 2))
    found = fitted.fit_transform(varying)
    places[:, : found.shape[1]] = found
    return places / max(float(np.abs(places).max()), 1e-12), float(fitted.explained_variance_ratio_.sum())


def _own_labels(policy: Policy | None, codes: Codes, profiles: Matrix) -> Codes | None:
    """The policy's own clusters of these items; those it has not seen join the nearest. None: it has none."""
    clusters = getattr(policy, "clusters", None)
    state: Mapping[str, torch.Tensor] = clusters.state_dict() if isinstance(clusters, ClusterMap) else {}
    if not state or state["centroids"].shape[1] != profiles.shape[1]:
        return None
    known = dict(zip(state["ids"].tolist(), state["labels"].tolist(), strict=True))
    others = nearest(torch.from_numpy(profiles), state["centroids"]).tolist()
    return np.array([known.get(code, other) for code, other in zip(codes.tolist(), others, strict=True)], np.int64)


def _kmeans(profiles: Matrix) -> Codes:
    """At most 8 clusters, fewer of few distinct profiles."""
    distinct = len(np.unique(profiles, axis=0))
    count = min(MOST_FOUND, distinct, max(1, len(profiles) // 4))
    if count < 2:
        return np.zeros(len(profiles), np.int64)
    from sklearn.cluster import KMeans

    return np.asarray(KMeans(count, n_init=3, random_state=0).fit_predict(profiles), np.int64)
