"""Archives that can be fetched: where they are published, how they are checked, and under which licence."""

from dataclasses import dataclass
from typing import Literal

from neuclust.errors import ConfigError, one_of

GROUPLENS = "https://files.grouplens.org/datasets/movielens"
YELP_PAGE = "https://business.yelp.com/data/resources/open-dataset/"
ZENODO = "https://zenodo.org"
KUAIRAND_RECORD = "10439422"


@dataclass(frozen=True, slots=True)
class Source:
    """One archive as published; where `md5` is None the sum is read from `record`, or else from `<url>.md5`.

    A constant sum also guards against a mirror or proxy that serves a wrong file together with a wrong sum.
    """

    name: str
    file: str
    size: str
    md5: str | None
    licence: str
    publisher: str = GROUPLENS
    record: str = ""  # the address of a JSON document {"files": [{"key": FILE, "checksum": "md5:..."}]}
    kind: Literal["zip", "tar.gz"] = "zip"
    members: tuple[str, ...] = ("ratings.csv", "ratings.dat")  # one of these must be inside
    problem: str = "movielens"  # that `prepare` makes of it

    @property
    def url(self) -> str:
        return f"{self.publisher}/{self.file}"


_PERMITTED = "without permission of GroupLens (University of Minnesota)"
_TERMS = (
    "Research use only: no commercial use {}, no claim of their endorsement, cite Harper and Konstan (2015), "
    "doi:10.1145/2827872. The full terms are in README.txt inside the archive."
)
_LARGE = _TERMS.format(f"and no redistribution {_PERMITTED}")
_SMALL = _TERMS.format(f"{_PERMITTED}, redistribution only under the same terms")
_KUAIRAND = (
    "CC BY-SA 4.0, https://creativecommons.org/licenses/by-sa/4.0: name the authors, share what is made of it alike, "
    "cite Gao et al. (2022), doi:10.1145/3511808.3557624."
)


def _kuairand(name: str, version: str, size: str) -> Source:
    """A version of KuaiRand; its sum is not a constant here but that of the publisher's record."""
    return Source(
        name,
        f"KuaiRand-{version}.tar.gz",
        size,
        None,
        _KUAIRAND,
        publisher=f"{ZENODO}/records/{KUAIRAND_RECORD}/files",
        record=f"{ZENODO}/api/records/{KUAIRAND_RECORD}",
        kind="tar.gz",
        members=(f"log_random_4_22_to_5_08_{version.lower()}.csv",),
        problem="kuairand",
    )


SOURCES = {
    "movielens-25m": Source("movielens-25m", "ml-25m.zip", "250 MB", "6b51fb2759a8657d3bfcbfc42b592ada", _LARGE),
    "movielens-small": Source("movielens-small", "ml-latest-small.zip", "1 MB", None, _SMALL),
    "kuairand": _kuairand("kuairand", "Pure", "45 MB"),
    "kuairand-1k": _kuairand("kuairand-1k", "1K", "1 GB"),
    "kuairand-27k": _kuairand("kuairand-27k", "27K", "9.2 GB"),
}


def find_source(name: str) -> Source:
    """The archive of that name; Yelp's cannot be fetched, and the error says where it is."""
    if name == "yelp":
        where = f"the Yelp Open Dataset page, {YELP_PAGE}"
        raise ConfigError(
            f"yelp's licence must be accepted in person: get yelp_dataset.tar from {where}, and prepare it"
        )
    if name not in SOURCES:
        raise ConfigError(one_of(name, [*SOURCES, "yelp"]))
    return SOURCES[name]
