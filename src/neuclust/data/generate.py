"""Raw files of any size in the publishers' layouts, for load tests: invented rows, a function of the arguments."""

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from neuclust.data.movielens import GENRES
from neuclust.data.raw import Progress
from neuclust.errors import ConfigError
from neuclust.files import placed
from neuclust.randomness import stream

USERS_PER_BLOCK = 20_000
REVIEWS_PER_BLOCK = 250_000
FIRST_RATING, LAST_RATING = 820_454_400, 1_574_294_400  # 1996 to November 2019
FIRST_REVIEW, LAST_REVIEW = 1_108_512_000, 1_642_636_800  # February 2005 to January 2022

# How often, roughly, and which: tokens of one word, of several words, with `&`, `/` and brackets.
CATEGORIES_BY_WEIGHT = {
    30: "Food",
    15: "Nightlife, Bars, American (Traditional), Sandwiches, Pizza, Fast Food, Mexican",
    9: "American (New), Breakfast & Brunch, Burgers, Italian, Coffee & Tea, Chinese, Seafood, Salad",
    4: "Chicken Wings, Cafes, Delis, Specialty Food, Desserts, Sushi Bars, Japanese, Caterers, Bakeries, "
    "Event Planning & Services, Sports Bars, Barbeque, Mediterranean, Asian Fusion, Steakhouses, Pubs",
    2: "Vegetarian, Wine & Spirits, Thai, Indian, Cocktail Bars, Greek, Vegan, Gluten-Free, Tacos, Diners, "
    "Middle Eastern, Southern, Cajun/Creole, Juice Bars & Smoothies, Ice Cream & Frozen Yogurt, Vietnamese",
    1: "Soup, Buffets, French, Korean, Hot Dogs, Tex-Mex, Bagels, Food Trucks, Caribbean, Halal, Noodles, "
    "Tapas/Small Plates, Irish, Soul Food, Cuban, Pakistani, Donuts, Wraps, Poke, Ramen, Hawaiian, Fondue",
}
CATEGORIES = [(name, weight) for weight, names in CATEGORIES_BY_WEIGHT.items() for name in names.split(", ")]
OTHER_BUSINESSES = ("Shopping", "Home Services", "Hair Salons, Beauty & Spas", "Automotive", "Dentists")
CITIES = (("Philadelphia", "PA"), ("Tampa", "FL"), ("Nashville", "TN"), ("Tucson", "AZ"), ("Reno", "NV"))
PHRASES = (
    *("the food was good", "and we came back", "for more", "not bad at all", "because service is quick"),
    *("lunch by the window", "dinner with friends", "the price is fair", "soup and salad", "again and again"),
    *("café très bien", 'the waiter said "enjoy"', "first line\nsecond line", "we waited", "would go again"),
)
ID_LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8)


def generate_movielens(n_ratings: int, out: Path, seed: int = 0, progress: Progress | None = None) -> None:
    """`ratings.csv` with exactly n_ratings rows sorted by user and movie, and `movies.csv`."""
    if n_ratings < 1:
        raise ConfigError(f"expected at least one rating, got {n_ratings}")
    n_movies = int(np.clip(n_ratings // 400, 1_000, 62_423))
    n_users = int(np.clip(n_ratings // 60, 1, USERS_PER_BLOCK))  # of a block
    movie_ids = np.cumsum(stream(seed, "movie-ids").integers(1, 7, n_movies)).astype(np.int32)
    out.mkdir(parents=True, exist_ok=True)
    with placed(out / "ratings.csv") as ratings, placed(out / "movies.csv") as movies:
        movies.write(_movies_csv(movie_ids, seed))
        ratings.write(b"userId,movieId,rating,timestamp\n")
        written, block = 0, 0
        while written < n_ratings:
            frame = _rating_block(movie_ids, n_users, seed, block).head(n_ratings - written)
            frame.write_csv(ratings, include_header=False)
            written, block = written + frame.height, block + 1
            if progress is not None:
                progress(written)


def generate_yelp(
    n_reviews: int, out: Path, seed: int = 0, text_length: int = 500, progress: Progress | None = None
) -> None:
    """`business.json` and `review.json` with exactly n_reviews lines of about text_length + 200 bytes."""
    if n_reviews < 1 or text_length < 1:
        raise ConfigError(f"expected at least one review and one letter, got {n_reviews} and {text_length}")
    businesses = _identifiers(stream(seed, "business-ids"), int(np.clip(n_reviews // 46, 50, 150_346)))
    users = _identifiers(stream(seed, "user-ids"), max(10, int(n_reviews / 3.5)))
    texts = _texts(seed, text_length)
    out.mkdir(parents=True, exist_ok=True)
    with placed(out / "business.json") as business, placed(out / "review.json") as review:
        _business_frame(businesses, seed).write_ndjson(business)
        for block, start in enumerate(range(0, n_reviews, REVIEWS_PER_BLOCK)):
            n = min(REVIEWS_PER_BLOCK, n_reviews - start)
            _review_block(n, businesses, users, texts, seed, block).write_ndjson(review)
            if progress is not None:
                progress(start + n)


def _rating_block(movie_ids: NDArray[np.int32], n_users: int, seed: int, block: int) -> pl.DataFrame:
    """Ratings of one block of users: counts have a heavy tail, popular movies are rated most."""
    rng = stream(seed, "ratings", block)
    n_movies = len(movie_ids)
    wanted = 20 + rng.lognormal(np.log(51), 1.39, n_users).astype(np.int64)
    drawn = np.repeat(np.arange(n_users), np.minimum(wanted, n_movies // 3))
    popularity = np.cumsum(1.0 / (10 + stream(seed, "popularity").permutation(n_movies)) ** 0.9)
    choice = np.searchsorted(popularity, rng.random(len(drawn)) * popularity[-1])
    user, movie = np.divmod(np.unique(drawn * n_movies + choice), n_movies)
    quality = 3.5 + stream(seed, "quality").normal(0, 0.4, n_movies)
    taste = quality[movie] + rng.normal(0, 0.45, n_users)[user]
    rating = np.clip(np.round(2 * (taste + rng.normal(0, 0.85, len(user)))) / 2, 0.5, 5.0)
    arrival = rng.integers(FIRST_RATING, LAST_RATING, n_users)[user]
    moment = np.minimum(arrival + rng.exponential(2e6, len(user)).astype(np.int64), LAST_RATING)
    user_ids = (user + 1 + block * n_users).astype(np.int32)
    return pl.DataFrame({"userId": user_ids, "movieId": movie_ids[movie], "rating": rating, "timestamp": moment})


def _movies_csv(movie_ids: NDArray[np.int32], seed: int) -> bytes:
    rng = stream(seed, "movies")
    n = len(movie_ids)
    size = rng.choice([1, 2, 3, 4, 5], n, p=[0.42, 0.3, 0.18, 0.07, 0.03])
    order = np.argsort(rng.random((n, len(GENRES) - 1)), axis=1)
    bare = rng.random(n) < 0.08
    years = rng.integers(1920, 2020, n)
    lines = [b"movieId,title,genres\n"]
    for row, movie in enumerate(movie_ids.tolist()):
        names = GENRES[-1] if bare[row] else "|".join(GENRES[g] for g in sorted(order[row, : size[row]]))
        title = f"Film {movie} ({years[row]})"
        if row % 5 == 0:
            title = f'"Film {movie}, The ""Été"" ({years[row]})"'
        lines.append(f"{movie},{title},{names}\n".encode())
    return b"".join(lines)


def _business_frame(identifiers: NDArray[np.bytes_], seed: int) -> pl.DataFrame:
    rng = stream(seed, "businesses")
    n = len(identifiers)
    city = rng.choice(len(CITIES), n, p=[0.4, 0.25, 0.15, 0.12, 0.08])
    return pl.DataFrame(
        {
            "business_id": identifiers.astype(str),
            "name": [f"Business {i}" for i in range(n)],
            "address": [f"{i % 9000} Main St" for i in range(n)],
            "city": [CITIES[c][0] for c in city],
            "state": [CITIES[c][1] for c in city],
            "postal_code": [f"{i % 100000:05d}" for i in range(n)],
            "latitude": rng.uniform(25, 45, n).round(6),
            "longitude": rng.uniform(-120, -75, n).round(6),
            "stars": rng.integers(2, 11, n) / 2,
            "review_count": rng.integers(5, 400, n),
            "is_open": rng.integers(0, 2, n),
            "attributes": [{"RestaurantsTakeOut": "True"} if i % 3 else None for i in range(n)],
            "categories": _categories(n, rng),
            "hours": [{"Monday": "7:0-20:0"} if i % 2 else None for i in range(n)],
        }
    )


def _categories(n: int, rng: np.random.Generator) -> list[str | None]:
    """About a third are restaurants with 1 to 8 categories in any order; a few list nothing at all."""
    names = [name for name, _ in CATEGORIES]
    keys = np.log([weight for _, weight in CATEGORIES]) + rng.gumbel(size=(n, len(CATEGORIES)))
    order = np.argsort(-keys, axis=1)  # the largest keys are a draw without replacement by weight
    size = np.minimum(rng.poisson(2.4, n), 8)
    place, kind = rng.random(n), rng.random(n)
    texts: list[str | None] = []
    for row in range(n):
        if kind[row] < 0.35:
            listed = [names[c] for c in order[row, : size[row]]]
            listed.insert(int(place[row] * (len(listed) + 1)), "Restaurants")
            texts.append(", ".join(listed))
        else:
            other = OTHER_BUSINESSES[int(place[row] * len(OTHER_BUSINESSES))]
            texts.append(None if kind[row] > 0.999 else other)
    return texts


def _review_block(
    n: int, businesses: NDArray[np.bytes_], users: NDArray[np.bytes_], texts: list[str], seed: int, block: int
) -> pl.DataFrame:
    """Reviews in any order; few users write many (a power of a uniform draw), most write one or two."""
    rng = stream(seed, "reviews", block)
    user = (len(users) * rng.random(n) ** 1.6).astype(np.int64)
    business = (len(businesses) * rng.random(n) ** 1.3).astype(np.int64)
    moment = pl.Series(rng.integers(FIRST_REVIEW, LAST_REVIEW, n))
    return pl.DataFrame(
        {
            "review_id": _identifiers(rng, n).astype(str),
            "user_id": users[user].astype(str),
            "business_id": businesses[business].astype(str),
            "stars": rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], n, p=[0.13, 0.08, 0.11, 0.22, 0.46]),
            "useful": rng.poisson(1.2, n),
            "funny": rng.poisson(0.3, n),
            "cool": rng.poisson(0.5, n),
            "text": pl.Series(texts).gather(rng.integers(0, len(texts), n)),
            "date": pl.from_epoch(moment).dt.strftime("%Y-%m-%d %H:%M:%S"),
        }
    )


def _texts(seed: int, length: int) -> list[str]:
    """A pool of texts to draw from, with quotes, accents and line breaks."""
    rng = stream(seed, "texts")
    sizes = np.maximum(1, rng.lognormal(np.log(length / 18) - 0.32, 0.8, 4096)).astype(np.int64)
    return [" ".join(rng.choice(PHRASES, size)) for size in sizes]


def _identifiers(rng: np.random.Generator, n: int) -> NDArray[np.bytes_]:
    """22 letters each, as in Yelp's files: 132 random bits, so none repeats."""
    letters = ID_LETTERS[rng.integers(0, len(ID_LETTERS), (n, 22), dtype=np.uint8)]
    return letters.view("S22").ravel()
