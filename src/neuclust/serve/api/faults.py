"""What is wrong with a request that does not fit its schema, fault by fault, in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from neuclust.errors import suggestion
from neuclust.serve.api.bodies import NAME, Changes, Configuration
from neuclust.serve.api.problems import MEDIA, Refused, document, respond

JSON = "application/json"
MOST = 100  # faults that are told
NAMED = "1 to 63 of a-z, 0-9, - and _, a letter or digit first"
OUGHT = ("Input should be ", "Value should be ", "String should ")  # how pydantic begins


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, and the part of the request it is about."""

    field: str
    detail: str

    def to_json(self) -> dict[str, str]:
        return {"field": self.field, "detail": f"{self.field}: {self.detail}"}


async def on_invalid(request: Request, error: Exception) -> JSONResponse:
    """The response to a request that does not fit its schema; its first fault is the problem's own."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return respond(Refused(400, f"body: expected JSON, got {first.get('ctx', {}).get('error', 'other text')}"))
    faults = faults_of(request, error.errors())
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    told = document(422, f"{faults[0].field}: {faults[0].detail}{more}", faults[0].field)
    return JSONResponse({**told, "errors": [each.to_json() for each in faults]}, 422, media_type=MEDIA)


def faults_of(request: Request, errors: Sequence[Mapping[str, Any]]) -> list[Fault]:
    """The faults in their order."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if errors[0]["loc"] == ("body",) and not media.endswith("json") and errors[0]["type"] != "missing":
        got = f"got one of type {media:.100}" if media else "got one without a Content-Type"
        return [Fault("body", f"expected JSON, {got}; send it with Content-Type: {JSON}")]
    return [_fault(request, each) for each in errors[:MOST]]


def _fault(request: Request, error: Mapping[str, Any]) -> Fault:
    where = error["loc"]
    field = ".".join(str(part) for part in where[1:]) or str(where[0])
    kind, got = error["type"], f", got {error['input']!r:.100}" if "input" in error else ""
    if kind == "missing":
        missing = f"a value, got none; add it to the {where[0]}" if len(where) > 1 else "one, got none; send it as JSON"
        return Fault(field, f"expected {missing}")
    if kind == "extra_forbidden":
        return Fault(field, _unknown(_model_at(request, where[1:-1]), str(where[-1])))
    if kind == "string_pattern_mismatch" and error.get("ctx", {}).get("pattern") == NAME:
        return Fault(field, f"expected {NAMED}{got}; choose another name")
    said = str(error["msg"])
    for begin in OUGHT:
        said = said.replace(begin, f"expected {'a text that should ' if begin.startswith('String') else ''}", 1)
    return Fault(field, f"{said[:1].lower()}{said[1:]}{got}")


def _unknown(model: type[BaseModel] | None, name: str) -> str:
    """About an entry that is none."""
    known = [] if model is None else list(model.model_fields)
    if model is Changes and name in Configuration.model_fields:
        can = ", ".join(known)
        why = f"{name} is fixed when a recommender is made, since what was learned depends on it"
        return f"expected what may change ({can}), but {why}; PUT a new recommender with the value you want"
    meant = f"; {suggestion(name, known)}" if known else "; leave it out"
    return f"expected no entry of this name, got one{meant}"


# --- the part of a schema that a fault is about ---------------------------------------------------------------


def _model_at(request: Request, path: Sequence[str | int]) -> type[BaseModel] | None:
    """The model whose entry is at a path below the body."""
    field = getattr(request.scope.get("route"), "body_field", None)
    kinds = [] if field is None else list(_kinds(field.field_info.annotation))
    for part in path:
        kinds = [found for kind in kinds for found in _inside(kind, part)]
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _kinds(kind: Any) -> Iterator[Any]:
    """A type without its annotations, or each of a union."""
    if get_origin(kind) is Annotated:
        yield from _kinds(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from _kinds(each)
    else:
        yield kind


def _inside(kind: Any, part: str | int) -> Iterator[Any]:
    """The types of an entry of a value of this type; pydantic puts the names of a union's models into the path, too."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if part == kind.__name__:
            yield kind
        elif part in kind.model_fields:
            yield from _kinds(kind.model_fields[str(part)].annotation)
    elif get_origin(kind) is list and isinstance(part, int):
        yield from _kinds(get_args(kind)[0])
