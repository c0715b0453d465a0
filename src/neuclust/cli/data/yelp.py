"""`neuclust data prepare yelp`: the Yelp Open Dataset as a problem."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from neuclust.cli.command import option
from neuclust.cli.data import prepare
from neuclust.errors import ConfigError

if TYPE_CHECKING:
    from neuclust.data.raw import RawFile

BUSINESS_NAMES = ("yelp_academic_dataset_business.json", "business.json")
REVIEW_NAMES = ("yelp_academic_dataset_review.json", "review.json")


class UserVector(enum.StrEnum):
    """How a Yelp user's tastes are computed."""

    FIXED = "fixed"
    AUTHORS = "authors"


@dataclass(frozen=True, slots=True)
class YelpCommand:
    out: Path = prepare.out_option()
    business: Path | None = option(None, "business.json, also .gz.", "FILE", heading=prepare.RAW)
    review: Path | None = option(None, "review.json, also .gz.", "FILE")
    tar: Path | None = option(None, "Both, in the .tar or .tgz as published.", "FILE")
    user_vector: UserVector = option(
        UserVector.FIXED,
        "fixed: mean stars per term; authors: with the bug of their code (docs/data.md).",
        heading=prepare.SHAPE,
    )
    rounds: int = option(1000, "At most N users; 0: all.", "N", "--rounds", "--max-users", min=0)
    skip_rounds: int = option(1, "Leave the first N users out (the authors do 1).", "N", min=0)
    min_term_weight: float = option(50.0, "Keep terms whose tf-idf, summed over restaurants, reaches W.", "W")
    city: list[str] | None = option(None, "Only restaurants there; may be repeated.", "NAME", heading=prepare.FILTERS)
    after: str | None = option(None, prepare.AFTER, "DATE")
    before: str | None = prepare.before_option()
    skip_bad: int = prepare.skip_option()

    def files(self) -> tuple[RawFile, RawFile]:
        """The businesses and the reviews."""
        from neuclust.data.raw import RawFile, tar_member

        if self.tar is not None and (self.business is not None or self.review is not None):
            raise ConfigError("expected --tar or --business with --review, got both")
        if self.tar is not None:
            return tar_member(self.tar, BUSINESS_NAMES), tar_member(self.tar, REVIEW_NAMES)
        if self.business is None or self.review is None:
            raise ConfigError("expected --business FILE and --review FILE, or --tar FILE with both inside")
        return RawFile(self.business), RawFile(self.review)


def yelp(options: YelpCommand) -> None:
    """The Yelp Open Dataset: restaurants are arms, users are rounds."""
    from neuclust.data.raw import seconds_since_1970
    from neuclust.data.yelp import YelpOptions, prepare_yelp

    prepare.check_out(options.out)
    chosen = YelpOptions(
        user_vector=options.user_vector.value,
        cities=tuple(options.city or ()),
        after=None if options.after is None else seconds_since_1970(options.after),
        before=None if options.before is None else seconds_since_1970(options.before),
        min_term_weight=options.min_term_weight,
        rounds=options.rounds or None,
        skip_rounds=options.skip_rounds,
        skip_bad=options.skip_bad,
    )
    business, review = options.files()
    dataset, report = prepare.write_prepared(
        options.out, review, lambda progress: prepare_yelp(business, review, chosen, progress)
    )
    typer.echo(
        f"read {report.businesses:,} businesses ({report.restaurants:,} restaurants kept) and "
        f"{report.reviews_read:,} reviews ({report.reviews_kept:,} by the {report.users:,} users dealt)"
    )
    prepare.echo_bad(report.bad_rows, report.bad_examples)
    prepare.echo_written(options.out, dataset, "restaurants", "users")
