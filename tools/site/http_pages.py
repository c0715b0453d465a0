"""The routes of the service and the bodies they take, as a page made from its OpenAPI document."""

from collections.abc import Mapping
from typing import Any

from fastapi.openapi.utils import get_openapi

from neuclust import __version__
from neuclust.serve.api.app import ROUTES
from neuclust.serve.api.problems import Problem
from tools.site.tables import code, table

Schema = Mapping[str, Any]
REFUSED = 400  # statuses from which on an answer is a problem document
VERBS = ("get", "put", "post", "patch", "delete")


def document() -> dict[str, Any]:
    """OpenAPI of all routes, without a running service."""
    routes = [route for each in ROUTES for route in each.routes.routes]
    made = get_openapi(title="neuclust", version=__version__, routes=routes)
    made["components"]["schemas"][Problem.__name__] = Problem.model_json_schema()
    return made


def page() -> str:
    """Routes first, then what bodies and answers are made of."""
    made = document()
    routes = [
        section(verb, path, operations[verb]) for path, operations in made["paths"].items() for verb in VERBS
        if verb in operations
    ]  # fmt: skip
    schemas = made["components"]["schemas"]
    bodies = [schema_section(name, schemas[name]) for name in sorted(schemas)]
    return "\n\n".join(["## Routes", *routes, "## Bodies", *bodies])


def section(verb: str, path: str, operation: Schema) -> str:
    parts = [f"### `{verb.upper()} {path}`", _plain(operation.get("description") or operation.get("summary", ""))]
    parameters = [
        (code(each["name"]), each["in"], kind(each["schema"]), "yes" if each.get("required") else "",
         _plain(each.get("description", ""))) for each in operation.get("parameters", ())
    ]  # fmt: skip
    if parameters:
        parts.append(table(("parameter", "in", "kind", "required", "meaning"), parameters))
    contents = operation.get("requestBody", {}).get("content", {})
    if contents:
        parts.append(
            "Body: " + "; ".join(f"{kind(each.get('schema', {}))} (`{name}`)" for name, each in contents.items())
        )
    answers = operation["responses"].items()
    good = [(code(status), kind(_schema(each))) for status, each in answers if int(status) < REFUSED]
    parts.append("Answer: " + "; ".join(f"{status} {body}" for status, body in good) + ".")
    bad = [f"{code(status)} {_plain(each['description'])}" for status, each in answers if int(status) >= REFUSED]
    if bad:
        parts.append(f"Refusals, each a {kind({'$ref': Problem.__name__})}: {'; '.join(bad)}.")
    return "\n\n".join(part for part in parts if part)


def _schema(answer: Schema) -> Schema:
    contents = list(answer.get("content", {}).values())
    found: Schema = contents[0].get("schema", {}) if contents else {}
    return found


def schema_section(name: str, schema: Schema) -> str:
    required = schema.get("required", ())
    rows = [
        (
            code(key),
            kind(each),
            "yes" if key in required else "",
            code(_default(each)),
            _plain(each.get("description", "")),
        )
        for key, each in schema.get("properties", {}).items()
    ]
    parts = [f"(http-{name.lower()})=\n### {name}", _plain(schema.get("description", ""))]
    parts.append(table(("field", "kind", "required", "default", "meaning"), rows) if rows else f"Kind: {kind(schema)}.")
    return "\n\n".join(part for part in parts if part)


def kind(schema: Schema) -> str:
    """A schema in a few words, linked where it has a name."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#http-{name.lower()})"
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return " or ".join(dict.fromkeys(kind(each) for each in schema[choice]))
    if "enum" in schema or "const" in schema:
        return " or ".join(code(str(each)) for each in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {kind(schema['additionalProperties'])}"
    return str(schema.get("type", "anything"))


def _default(schema: Schema) -> str:
    value = schema.get("default")
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _plain(text: str) -> str:
    return text.replace("<", r"\<").replace("*", r"\*")
