"""Yelp from the raw files to the prepared problem: restaurants are arms, users are rounds."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from neuclust.data.dataset import ProfileDataset, profile_dataset
from neuclust.data.options import Codes, Floats, check_choice, check_dates, check_least, feature_sums, ratio
from neuclust.data.raw import BadRows, Progress, RawFile
from neuclust.data.yelp_files import Restaurant, read_restaurants, review_chunks
from neuclust.errors import DataError


@dataclass(frozen=True, slots=True)
class YelpOptions:
    """The paper's filters by default; dates are seconds since 1970 and both ends are strict."""

    user_vector: Literal["fixed", "authors"] = "fixed"
    cities: tuple[str, ...] = ()
    after: int | None = None
    before: int | None = None
    min_term_weight: float = 50.0  # a term is kept when its tf-idf, summed over restaurants, reaches this
    rounds: int | None = 1000  # users at most; None: all of them
    skip_rounds: int = 1  # the authors never play the first user of the file
    skip_bad: int = 0

    def __post_init__(self) -> None:
        check_choice(self, "user_vector", "fixed", "authors")
        check_dates(self.after, self.before)
        check_least(self, rounds=1, skip_rounds=0, skip_bad=0)


@dataclass(frozen=True, slots=True)
class YelpReport:
    """How many rows were read and kept."""

    businesses: int
    restaurants: int
    terms: int
    reviews_read: int
    reviews_kept: int  # of restaurants, within the dates, by the users dealt
    users: int
    bad_rows: int
    bad_examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Reviews:
    """Reviews of the users that are dealt, coded by position; `first_line` identifies a user."""

    first_line: Codes  # (U,)
    user: Codes  # (n,)
    restaurant: Codes  # (n,)
    stars: Floats  # (n,)
    read: int


def prepare_yelp(
    business: RawFile, review: RawFile, options: YelpOptions, progress: Progress | None = None
) -> tuple[ProfileDataset, YelpReport]:
    """Read, check and filter the raw files; arms are tf-idf rows (N, d), rounds are users' tastes (U, d)."""
    bad = BadRows(options.skip_bad)
    restaurants, every = read_restaurants(business, options.cities, bad)
    contexts, terms = category_contexts([r.categories for r in restaurants], options.min_term_weight)
    reviews = _read_reviews(review, restaurants, every, options, bad, progress)
    tastes = user_tastes(reviews, restaurants, contexts, terms, options.user_vector)
    dealt = np.flatnonzero(tastes.any(axis=1))
    if dealt.size == 0:
        raise DataError("expected users with at least one kept term, got none; lower it", field="min_term_weight")
    lines = np.array([r.line for r in restaurants], dtype=np.int64)
    dataset = profile_dataset("yelp", terms, (lines, contexts), (reviews.first_line[dealt], tastes[dealt]))
    report = YelpReport(
        businesses=len(every),
        restaurants=len(restaurants),
        terms=len(terms),
        reviews_read=reviews.read,
        reviews_kept=len(reviews.stars),
        users=len(reviews.first_line),
        bad_rows=bad.count,
        bad_examples=tuple(bad.examples),
    )
    return dataset, report


def document(categories: tuple[str, ...]) -> str:
    """Categories joined by blanks with `&` removed: what the tf-idf is computed on."""
    return " ".join(categories).replace("&", "")


def category_contexts(categories: list[tuple[str, ...]], min_term_weight: float) -> tuple[Floats, tuple[str, ...]]:
    """tf-idf of the categories, columns with Σ ≥ min_term_weight only, rows not normalised again: (N, d).

    idf = ln((1 + n) / (1 + df)) + 1, rows of unit length over *all* terms (scikit-learn's defaults).
    """
    vectorizer = TfidfVectorizer()
    weights = vectorizer.fit_transform([document(names) for names in categories]).tocsc()
    summed = np.asarray(weights.sum(axis=0)).ravel()
    kept = np.flatnonzero(summed >= min_term_weight)
    if kept.size == 0:
        expected = f"terms whose tf-idf sums to {min_term_weight:g} or more over {len(categories):,} restaurants"
        got = f"the largest sums to {summed.max():.1f}"
        raise DataError(f"expected {expected}, {got}; lower it", field="min_term_weight")
    names = vectorizer.get_feature_names_out()
    return weights[:, kept].toarray(), tuple(str(names[column]) for column in kept)


def user_tastes(
    reviews: _Reviews,
    restaurants: list[Restaurant],
    contexts: Floats,
    terms: tuple[str, ...],
    kind: Literal["fixed", "authors"],
) -> Floats:
    """Query of each user, (U, d).

    fixed:   mean stars over the user's reviews of restaurants that carry the term (0 if none).
    authors: Σ stars over reviews with a category that *as a whole, in lower case,* is the term, divided by
             all of the user's reviews. Categories of several words never match (bug D31 of their code).
    """
    users, given = len(reviews.first_line), (reviews.user, reviews.restaurant, reviews.stars)
    if kind == "authors":
        sums, _ = feature_sums(*given, whole_category_matches(restaurants, terms), users)
        return sums / np.bincount(reviews.user, minlength=users)[:, None]
    return ratio(*feature_sums(*given, csr_matrix(contexts > 0, dtype=np.float64), users))


def whole_category_matches(restaurants: list[Restaurant], terms: tuple[str, ...]) -> csr_matrix:
    """How many of a restaurant's categories equal the term once in lower case, (N, d)."""
    column = {term: index for index, term in enumerate(terms)}
    pairs = [
        (row, column[name.lower()])
        for row, restaurant in enumerate(restaurants)
        for name in restaurant.categories
        if name.lower() in column
    ]
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return csr_matrix((np.ones(len(pairs)), (rows, columns)), shape=(len(restaurants), len(terms)))


def _read_reviews(
    file: RawFile,
    restaurants: list[Restaurant],
    every: frozenset[str],
    options: YelpOptions,
    bad: BadRows,
    progress: Progress | None,
) -> _Reviews:
    """The reviews of the first users in file order, in one pass."""
    places = pl.DataFrame({"business_id": [r.business_id for r in restaurants]}).with_row_index("restaurant")
    limit = None if options.rounds is None else options.rounds + options.skip_rounds
    users = pl.DataFrame(schema={"user_id": pl.String, "line": pl.Int64, "user": pl.Int64})
    pieces: list[pl.DataFrame] = []
    read = 0
    for chunk in review_chunks(file, every, bad, progress):
        read += chunk.height
        kept = chunk.filter(_within(options)).join(places, on="business_id", maintain_order="left")
        users = _admitted(users, kept, limit)
        rows = kept.join(users, on="user_id", maintain_order="left")
        pieces.append(rows.select("restaurant", "stars", "user"))
    kept = pl.concat(pieces).filter(pl.col("user") >= options.skip_rounds)
    if kept.is_empty():
        expected = (
            f"reviews of {len(restaurants):,} restaurants by more than {options.skip_rounds} users within the dates"
        )
        raise DataError(f"{file.label}: expected {expected}, got none among {read:,}; widen the filters")
    first_line = users["line"].to_numpy()[options.skip_rounds :]
    user, restaurant = (kept[name].to_numpy().astype(np.int64) for name in ("user", "restaurant"))
    stars = kept["stars"].to_numpy().astype(np.float64)
    return _Reviews(first_line, user - options.skip_rounds, restaurant, stars, read)


def _admitted(users: pl.DataFrame, reviews: pl.DataFrame, limit: int | None) -> pl.DataFrame:
    """`users` and the new ones of `reviews`, numbered in order of appearance, up to `limit` of them."""
    if limit is not None and users.height >= limit:
        return users
    seen = reviews.select("user_id", "line").unique("user_id", keep="first", maintain_order=True)
    fresh = seen.join(users, on="user_id", how="anti", maintain_order="left")
    fresh = fresh.head(fresh.height if limit is None else limit - users.height)
    number = pl.int_range(users.height, pl.len() + users.height, dtype=pl.Int64)
    return pl.concat([users, fresh.with_columns(number.alias("user"))])


def _within(options: YelpOptions) -> pl.Expr:
    inside = pl.lit(True)
    if options.after is not None:
        inside &= pl.col("moment") > datetime.fromtimestamp(options.after, UTC).replace(tzinfo=None)
    if options.before is not None:
        inside &= pl.col("moment") < datetime.fromtimestamp(options.before, UTC).replace(tzinfo=None)
    return inside
