"""The shapes of answers, for OpenAPI. Fields that are named are always there."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_WHOLE: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}
_MAYBE: Schema = {"type": ["number", "null"]}
_TEXT: Schema = {"type": "string"}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_FLAG: Schema = {"type": "boolean"}
_KEY: Schema = {"type": ["string", "integer"], "description": "Exact unless `key_base64` is there."}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _maybe(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


_MISSING = _list(_list(_NUMBER))
_RANGE = {
    "upper": _WHOLE, "inner": _WHOLE, "estimate": _NUMBER,
    "rows": _WHOLE, "partial": _WHOLE, "predicted_error": _NUMBER, "missing": _MISSING,
}  # fmt: skip
_STEPS = {
    "step": _NUMBER, "start": _list(_NUMBER), "upper": _list(_WHOLE), "inner": _list(_WHOLE),
    "estimate": _list(_NUMBER), "missing": _MISSING,
}  # fmt: skip
_ITEM = {"key": _KEY, "count": _NUMBER, "lower": _NUMBER, "share": _NUMBER}

SCHEMAS: dict[str, Schema] = {
    "Anything": {"type": "object"},
    "Error": _object(
        error=_object(
            type=_TEXT, code=_TEXT, message=_TEXT, field=_MAYBE_TEXT, hint=_MAYBE_TEXT,
            details={"type": "object"},
        )
    ),
    "Stats": _object(
        version=_TEXT, started=_NUMBER, ready=_FLAG,
        monitor=_maybe(
            _object(
                events=_WHOLE, new=_WHOLE, late=_WHOLE, ahead=_WHOLE, aside=_WHOLE,
                per_second=_NUMBER,
                since=_MAYBE, time=_MAYBE,
            )
        ),
        history=_maybe(
            _object(
                window=_MAYBE, first=_MAYBE, last=_MAYBE, events=_WHOLE, segments=_WHOLE,
                bytes=_WHOLE, predicted_error=_NUMBER, failure=_MAYBE_TEXT, damaged=_WHOLE,
            )
        ),
        keyspace={"type": ["object", "null"]},
    ),
    "Hot": _object(
        items=_list(
            _object(**_ITEM, per_minute=_NUMBER, trend=_TEXT, came=_list(_NUMBER), every=_NUMBER)
        )
    ),
    "Seen": _object(key=_KEY, seen=_FLAG),
    "Count": _object(
        key=_KEY, value=_NUMBER, lower=_NUMBER, upper=_MAYBE, confidence=_NUMBER, saturated=_FLAG
    ),
    "Pulse": _object(events=_list(_WHOLE), new=_list(_WHOLE)),
    "Structures": _object(
        items=_list(
            _object(
                of=_TEXT, name=_TEXT, kind=_TEXT, items=_MAYBE, fill=_MAYBE,
                predicted_error=_MAYBE, bytes=_WHOLE,
            )
        )
    ),
    "Guards": _object(items=_list(_object(name=_TEXT))),
    "Sources": _object(
        items=_list(
            _object(
                name=_TEXT, lines=_WHOLE, counted=_WHOLE, skipped=_WHOLE, without=_WHOLE,
                field=_TEXT, bad=_list(_TEXT),
            )
        ),
        problems=_list(_TEXT),
    ),
    "RangeCount": _object(key=_KEY, **_RANGE),
    "Series": _object(key=_KEY, **_STEPS),
    "Total": {"anyOf": [_object(**_RANGE), _object(**_STEPS)]},
    "TopKeys": _object(
        items=_list(_object(**_ITEM)), unlisted=_WHOLE, total=_WHOLE, missing=_MISSING
    ),
    "Added": _object(added=_WHOLE, new=_WHOLE, batches=_WHOLE),
}  # fmt: skip
