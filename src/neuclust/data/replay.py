"""Replay of MovieLens: half of each user's ratings are the profile, the other half is the feedback.

A round is a movie, its arms are the users who rated it in the other half; reward 1[rating ≥ threshold].
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from neuclust.data.dataset import ProfileDataset, profile_dataset
from neuclust.data.movielens import GENRES, KeptRatings, MovieLensOptions, MovieLensReport, genre_means, read_kept
from neuclust.data.movielens_files import BEST_RATING, WORST_RATING
from neuclust.data.offers import Offers
from neuclust.data.options import Bools, Codes, Floats, check_choice, check_least, ratio
from neuclust.data.raw import Progress, RawFile
from neuclust.errors import ConfigError, DataError
from neuclust.randomness import stream


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Which ratings are read, how each user's are divided, and what counts as a round and as a success."""

    reading: MovieLensOptions = field(default_factory=lambda: MovieLensOptions(after=0, min_ratings=20))
    split: Literal["random", "time"] = "random"
    shrink: float = 5.0  # c: ratings at the user's mean that every entry starts with
    threshold: float = 4.0  # stars that count as liked
    min_arms: int = 20  # users who rated a movie in the replay half, for it to be a round
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self, "split", "random", "time")
        check_least(self, shrink=0, min_arms=1)
        if not WORST_RATING <= self.threshold <= BEST_RATING:
            stars = f"{WORST_RATING} to {BEST_RATING} stars"
            raise ConfigError(f"expected {stars}, got {self.threshold}", field="threshold")


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """How many rows were read, and how they were divided."""

    reading: MovieLensReport
    profile_ratings: int
    replayed_ratings: int  # offered in some round
    liked: float  # share of them
    arms_per_round: tuple[int, float, int]  # fewest, median, most


def prepare_replay(
    ratings: RawFile, movies: RawFile, options: ReplayOptions, progress: Progress | None = None
) -> tuple[ProfileDataset, ReplayReport]:
    """Read and filter the raw files, divide every user's ratings, and lay out profiles and recorded rounds."""
    kept, genres, reading = read_kept(ratings, movies, options.reading, progress)
    first = profile_half(kept, options.split, options.seed)
    dealt, rows = _deal(kept, genres, first, options)
    users, offers = _recorded(kept, dealt, rows, options.threshold)
    profiles, counts = shrunk_profiles(kept, first, genres, options.shrink)
    arms, rounds = (kept.users[users], profiles[users]), (kept.movies[dealt], genres[dealt])
    dataset = profile_dataset("replay", GENRES, arms, rounds, counts[users], offers)
    sizes = int(offers.sizes.min()), float(np.median(offers.sizes)), int(offers.sizes.max())
    return dataset, ReplayReport(reading, int(first.sum()), len(rows), float(offers.rewards.mean()), sizes)


def profile_half(kept: KeptRatings, split: str, seed: int) -> Bools:
    """Ratings that go into profiles, (n,): by a coin per rating, or the earlier half of every user's (odd one too)."""
    if split == "random":
        return stream(seed, "replay split").random(len(kept.rating)) < 0.5
    order = np.lexsort((kept.timestamp, kept.user))  # stable: the same second keeps the order of the file
    number = np.bincount(kept.user)
    place = np.arange(len(order)) - np.repeat(np.cumsum(number) - number, number)
    first = np.zeros(len(order), dtype=bool)
    first[order] = 2 * place < np.repeat(number, number)
    return first


def shrunk_profiles(kept: KeptRatings, first: Bools, genres: Floats, shrink: float) -> tuple[Floats, Floats]:
    """x_{u,g} = (Σ ratings of g + c · mean of u) / (count + c) over ratings in `first`, and count + c: (U, d) each.

    0 where count + c is 0 and for users without such a rating.
    """
    user, rating, n = kept.user[first], kept.rating[first], len(kept.users)
    means, counts = genre_means(user, kept.movie[first], rating, genres, n)
    rated = np.bincount(user, minlength=n)
    own = np.bincount(user, rating, minlength=n) / np.maximum(rated, 1)
    behind = np.where(rated[:, None] > 0, counts + shrink, 0.0)
    sums = means * counts + shrink * own[:, None]
    return ratio(sums, behind), behind


def _deal(kept: KeptRatings, genres: Floats, first: Bools, options: ReplayOptions) -> tuple[Codes, Codes]:
    """Movies dealt as rounds, shuffled, and the rows of the replayed ratings, of users that have a profile."""
    known = np.bincount(kept.user[first], minlength=len(kept.users)) > 0
    replayed = ~first & known[kept.user] & (genres.sum(1) > 0)[kept.movie]
    raters = np.bincount(kept.movie[replayed], minlength=len(kept.movies))
    enough = np.flatnonzero(raters >= options.min_arms)
    if enough.size == 0:
        expected = f"movies that at least {options.min_arms} users rated in the replay half"
        got = f"at most {raters.max()} users per movie; lower it, or keep more ratings"
        raise DataError(f"expected {expected}, got {got}", field="min_arms")
    dealt = stream(options.seed, "replay rounds").permutation(enough)[: options.reading.rounds]
    return dealt, np.flatnonzero(replayed & np.isin(kept.movie, dealt))


def _recorded(kept: KeptRatings, dealt: Codes, rows: Codes, threshold: float) -> tuple[Codes, Offers]:
    """Users offered at least once, and the offers with their places among these users as arms."""
    place = np.zeros(len(kept.movies), dtype=np.int64)
    place[dealt] = np.arange(len(dealt))
    played = place[kept.movie[rows]]
    users, arm = np.unique(kept.user[rows], return_inverse=True)
    order = np.lexsort((arm, played))
    starts = np.concatenate([[0], np.cumsum(np.bincount(played, minlength=len(dealt)))])
    liked = (kept.rating[rows] >= threshold).astype(np.float32)
    return users, Offers(starts.astype(np.int64), arm[order].astype(np.int64), liked[order])
