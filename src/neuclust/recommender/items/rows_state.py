"""Saving rows: a few numbers as JSON, the encoded rows as floats, ids and raw values as the UTF-8 bytes of one text."""

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError, StateError
from neuclust.recommender.items.rows import Rows, check_ids, check_values
from neuclust.recommender.tables.values import shown

Arrays = dict[str, NDArray[Any]]


def rows_state(rows: Rows) -> tuple[dict[str, Any], Arrays]:
    """Sizes as JSON; `text` (bytes,) uint8 with ids and columns, `rows` (N, dim) float64."""
    columns = {name: [_tagged(value) for value in values] for name, values in rows.columns.items()}
    text = json.dumps({"ids": rows.ids, "columns": columns}, allow_nan=False, separators=(",", ":"))
    arrays: Arrays = {
        "text": np.frombuffer(text.encode("ascii"), dtype=np.uint8).copy(),
        "rows": rows.buffer[: len(rows)].copy(),
    }
    return {"count": len(rows), "dim": rows.dim}, arrays


def rows_from_state(state: object, arrays: Mapping[str, NDArray[Any]], what: str) -> Rows:
    """What `rows_state` gave, checked; `what` ("items", "users") begins the sentences."""
    count, dim = (_count(state, name, what) for name in ("count", "dim"))
    encoded = saved_array(arrays, "rows", np.float64, (count, dim), what)
    if not np.isfinite(encoded).all():
        raise StateError(f"saved {what}: expected finite encoded rows, got NaN or infinity; was it saved so?")
    content = _content(arrays, what)
    ids = content["ids"]
    columns = {name: [_untagged(value, what) for value in values] for name, values in content["columns"].items()}
    lengths = {len(ids), *(len(values) for values in columns.values())}
    if lengths != {count}:
        raise StateError(f"saved {what}: expected {count} ids and values per column, got {sorted(lengths)}")
    try:
        check_ids(ids)
        for name, values in columns.items():
            check_values(name, values)
    except DataError as error:
        raise StateError(f"saved {what}: {error}") from None
    rows = Rows(dim, ids, {each: code for code, each in enumerate(ids)}, columns)
    rows.buffer[:count] = encoded
    return rows


def saved_array(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any, shape: tuple[int, ...], what: str
) -> NDArray[Any]:
    """One saved array of this type and shape; −1 stands for any length."""
    found = arrays.get(name)
    got = "nothing" if found is None else f"{found.dtype} of shape {found.shape}"
    fits = found is not None and found.dtype == dtype and len(found.shape) == len(shape)
    if found is None or not fits or any(want not in (-1, have) for want, have in zip(shape, found.shape, strict=True)):
        expected = f"{name} as {np.dtype(dtype)} of shape {shape}"
        raise StateError(f"saved {what}: expected {expected}, got {got}; was it saved so?")
    return found


def _count(state: object, name: str, what: str) -> int:
    found = state.get(name) if isinstance(state, dict) else None
    if type(found) is not int or not 0 <= found < 2**40:
        raise StateError(f"saved {what}: expected {name} as a whole number, got {shown(found)}; was it saved so?")
    return found


def _content(arrays: Mapping[str, NDArray[Any]], what: str) -> dict[str, Any]:
    text = saved_array(arrays, "text", np.uint8, (-1,), what)
    try:
        content = json.loads(text.tobytes().decode("ascii"))
    except (ValueError, RecursionError):
        raise StateError(
            f"saved {what}: expected ids and values as JSON, got other bytes; is the save whole?"
        ) from None
    named = isinstance(content, dict) and isinstance(content.get("columns"), dict)
    if not named or not all(isinstance(each, list) for each in [content.get("ids"), *content["columns"].values()]):
        raise StateError(
            f"saved {what}: expected lists of ids and of values by column, got other JSON; was it saved so?"
        )
    return dict(content)


def _tagged(value: Any) -> Any:
    """Dates as {"date": text} or {"datetime": text}, tuples as lists; everything else is JSON as it is."""
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    return [_tagged(each) for each in value] if isinstance(value, tuple) else value


def _untagged(value: Any, what: str) -> Any:
    if isinstance(value, list):
        return tuple(_untagged(each, what) for each in value)
    if not isinstance(value, dict):
        return value
    ((tag, text),) = value.items() if len(value) == 1 else (("", ""),)
    read = {"datetime": datetime.fromisoformat, "date": date.fromisoformat}.get(tag)
    try:
        if read is not None and isinstance(text, str):
            return read(text)
    except ValueError:
        pass
    raise StateError(f"saved {what}: expected a date as ISO text, got {value!r:.100}; was it saved so?")
