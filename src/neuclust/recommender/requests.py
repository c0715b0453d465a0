"""What a shop asks for: one request, checked and as plain values."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from numbers import Integral
from typing import Any, TypedDict

from neuclust.errors import DataError, NeuclustError, brief, suggestion
from neuclust.recommender.tables.ids import distinct as different
from neuclust.recommender.tables.values import (
    LARGEST,
    LONGEST_ID,
    Id,
    NotPlain,
    Value,
    check_name,
    plain,
    plain_id,
    value_from_json,
    value_to_json,
)

MOST_REQUESTS = 10_000  # in one call
MOST_ELIGIBLE = 1_000_000  # ids in one request
MOST_COLUMNS = 1_000  # features of one user, or entries of one context


class RequestDetails(TypedDict, total=False):
    """The optional parts of a request."""

    user_features: Mapping[str, Any] | None  # what is known of the user now, beside or in place of the table's row
    context: Mapping[str, Any] | None  # of this request: the hour, the device, the page
    eligible: Any  # ids; None: every item
    exclude: Any  # ids that must not be shown
    required: Any  # ids that must be in the slate, in any slot
    at_most: Mapping[str, int] | None  # items of one value of a column: {"category": 2}
    k: int | None  # slots; None: the slate size
    request_id: str | int | None  # the same one gives the same answer


@dataclass(frozen=True, slots=True)
class Request:
    """A checked request; `row` are the user's features and the context together, the context first in rank."""

    user: Id | None
    user_features: dict[str, Value]
    context: dict[str, Value]
    eligible: tuple[Id, ...] | None
    exclude: tuple[Id, ...]
    required: tuple[Id, ...]
    at_most: dict[str, int]
    k: int
    request_id: Id | None = None

    @property
    def row(self) -> dict[str, Value]:
        """What this request says of its user, by column."""
        return {**self.user_features, **self.context}

    def fingerprint(self) -> str:
        """Equal for requests that ask for the same, whatever their ids are."""
        asked = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "request_id"}
        text = json.dumps(asked, sort_keys=True, default=str, separators=(",", ":"))
        return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def read_request(user: object, details: Mapping[str, Any], slate_size: int) -> Request:
    """The request of these arguments, refused where one is of a wrong type or does not fit the others."""
    known = RequestDetails.__optional_keys__
    for name in details:
        if name not in known:
            raise DataError(f"request: there is no {brief(name)}; {suggestion(name, sorted(known))}")
    features = _mapping(details.get("user_features"), "user_features")
    if isinstance(user, Mapping):
        features = {**features, **_mapping(user, "user")}
    eligible = details.get("eligible")
    given = details.get("request_id")
    request = Request(
        user=None if user is None or isinstance(user, Mapping) else plain_id(user, "user"),
        user_features=features,
        context=_mapping(details.get("context"), "context"),
        eligible=None if eligible is None else _ids(eligible, "eligible"),
        exclude=_ids(details.get("exclude"), "exclude"),
        required=_ids(details.get("required"), "required"),
        at_most=_caps(details.get("at_most")),
        k=_slots(details.get("k"), slate_size),
        request_id=None if given is None else plain_id(given, "request_id"),
    )
    _check_required(request)
    return request


def read_requests(requests: Any, slate_size: int) -> list[Request]:
    """Many requests, each a dictionary of the arguments of one."""
    flat = getattr(requests, "ndim", 1) > 0  # an array of no dimension cannot be iterated over
    if isinstance(requests, str | Mapping) or not isinstance(requests, Iterable) or not flat:
        raise DataError(f"requests: expected a list of dictionaries, got {brief(requests)}")
    read = []
    for at, arguments in enumerate(requests):
        if not isinstance(arguments, Mapping) or at >= MOST_REQUESTS:
            wanted = f"at most {MOST_REQUESTS:,} dictionaries such as {{'user': 'u17'}}"
            raise DataError(f"requests: expected {wanted}, got {brief(arguments)} as number {at + 1}")
        details = {name: value for name, value in arguments.items() if name != "user"}
        read.append(read_request(arguments.get("user"), details, slate_size))
    return read


def distinct(requests: Sequence[Request], known: Sequence[object]) -> tuple[list[Request], list[int]]:
    """Requests without an answer that is `known`, each once, and for every request its place among them (−1: known)."""
    new: list[Request] = []
    places: dict[Id, int] = {}
    again = []
    for request, answer in zip(requests, known, strict=True):
        if answer is not None:
            again.append(-1)
            continue
        at = None if request.request_id is None else places.get(request.request_id)
        if at is not None and new[at].fingerprint() != request.fingerprint():
            raise DataError(f"request_id: expected one request under {request.request_id!r:.100}, got two others")
        if at is None:
            at = len(new)
            new.append(request)
            if request.request_id is not None:
                places[request.request_id] = at
        again.append(at)
    return new, again


def request_to_json(request: Request) -> dict[str, Any]:
    """A request as JSON values."""
    rows = {name: _row_to_json(getattr(request, name)) for name in ("user_features", "context")}
    ids = {name: list(getattr(request, name)) for name in ("exclude", "required")}
    eligible = None if request.eligible is None else list(request.eligible)
    others = {"at_most": dict(request.at_most), "k": request.k, "request_id": request.request_id}
    return {"user": request.user, **rows, "eligible": eligible, **ids, **others}


def request_from_json(saved: Any) -> Request:
    """What `request_to_json` wrote, read as a request is; one of another kind is a `DataError`."""
    if not isinstance(saved, Mapping) or set(saved) != {each.name for each in fields(Request)}:
        raise DataError(f"choice: expected its request, got {brief(saved)}")
    details = {name: value for name, value in saved.items() if name != "user"}
    try:
        for name in ("user_features", "context"):
            details[name] = {column: value_from_json(value) for column, value in dict(saved[name]).items()}
        most = saved["k"] if type(saved["k"]) is int else 1  # the slate size is compared by whoever accepts it
        return read_request(saved["user"], details, most)
    except (NeuclustError, TypeError, ValueError) as error:
        raise DataError(f"choice: expected its request as it was asked; {error!s:.300}") from None


def _row_to_json(row: Mapping[str, Value]) -> dict[str, Any]:
    return {column: value_to_json(value) for column, value in row.items()}


def _mapping(given: Any, name: str) -> dict[str, Value]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or len(given) > MOST_COLUMNS:
        wanted = f"a dictionary of at most {MOST_COLUMNS:,} columns and values"
        raise DataError(f"{name}: expected {wanted}, got {brief(given)}; write {{'hour': 14}}")
    found: dict[str, Value] = {}
    for column, value in given.items():
        check_name(column, name)
        try:
            found[column] = plain(value)
        except NotPlain as error:
            raise DataError(f"{name}: column {column!r:.100}: {error}") from None
    return found


def _ids(given: Any, name: str) -> tuple[Id, ...]:
    if given is None:
        return ()
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise DataError(f"{name}: expected a list of item ids, got {brief(given)}; put one id into a list")
    ids = given.tolist() if hasattr(given, "tolist") else list(islice(given, MOST_ELIGIBLE + 1))
    if not isinstance(ids, list):  # an array of no dimension
        raise DataError(f"{name}: expected a list of item ids, got {brief(given)}; put one id into a list")
    if len(ids) > MOST_ELIGIBLE:
        raise DataError(f"{name}: expected at most {MOST_ELIGIBLE:,} ids, got more; leave it out to mean all")
    if _are_plain(ids):
        return tuple(ids)
    return tuple(plain_id(each, name) for each in ids)


def _are_plain(ids: list[Any]) -> bool:
    """Whether all are texts, or all whole numbers, of a moderate length."""
    kinds = set(map(type, ids))
    if kinds == {str}:
        return max(map(len, ids)) <= LONGEST_ID
    return not kinds or (kinds == {int} and min(ids) >= -LARGEST and max(ids) <= LARGEST)


def _caps(given: Any) -> dict[str, int]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DataError(f"at_most: expected a column and a number, got {brief(given)}; write {{'category': 2}}")
    for column, most in given.items():
        check_name(column, "at_most")
        if isinstance(most, bool) or not isinstance(most, Integral) or not 1 <= int(most) < 2**31:
            got = f"got {brief(most)} for {column!r:.100}; exclude items that must not be shown"
            raise DataError(f"at_most: expected a whole number from 1, {got}")
    return {column: int(most) for column, most in given.items()}


def _slots(given: Any, slate_size: int) -> int:
    if given is None:
        return slate_size
    if isinstance(given, bool) or not isinstance(given, Integral) or not 1 <= int(given) <= slate_size:
        larger = isinstance(given, Integral) and not isinstance(given, bool) and int(given) > slate_size
        advice = "make the recommender with a larger slate_size" if larger else "leave it out for the slate size"
        wanted = f"a whole number from 1 to {slate_size}, the slate size"
        raise DataError(f"k: expected {wanted}, got {brief(given)}; {advice}")
    return int(given)


def _check_required(request: Request) -> None:
    """Refuse required ids that come twice, are excluded, or are more than the slots."""
    required = different(request.required)
    if len(required) < len(request.required):
        raise DataError(f"required: expected every id once, got {brief(list(request.required))}")
    both = required & different(request.exclude)
    if both:
        named = next(each for each in request.required if not both.isdisjoint(different([each])))
        raise DataError(f"required: expected ids that are not excluded, got {brief(named)} in both")
    if len(required) > request.k:
        raise DataError(f"required: expected at most k = {request.k} ids, got {len(required)}; require fewer")
