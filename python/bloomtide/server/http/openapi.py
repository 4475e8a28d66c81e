"""The description of the API for programs, made from the table of paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bloomtide import __version__
from bloomtide.server.http.schemas import SCHEMAS

if TYPE_CHECKING:
    from bloomtide.server.http.routes import Path

_ABOUT = (
    "Questions about a stream of events: what was seen, how often, what is hot, what happened when."
)
_REFUSALS = {
    "400": "Something is wrong with the request",
    "401": "The token is missing or wrong",
    "405": "The path has another method",
    "409": "This server does not have what is asked for",
    "421": "Without a token: the host is asked for by a name that is not `localhost`",
    "503": "Not now",
}
_OF_BODIES = {
    "408": "The body did not come in time",
    "413": "The body is too large",
    "415": "The body is of a type that is not known, or compressed",
}


def document(paths: Sequence[Path]) -> dict[str, Any]:
    """As OpenAPI 3.1."""
    told: dict[str, Any] = {}
    for path in paths:
        told.setdefault(path.path, {})[path.method.lower()] = _operation(path)
    return {
        "openapi": "3.1.0",
        "info": {"title": "bloomtide", "version": __version__, "description": _ABOUT},
        "paths": told,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = {
        "summary": path.about,
        "operationId": path.method.lower() + path.path.replace("/", "_").replace(".", "_"),
        "parameters": [param.schema() for param in path.params],
        "responses": {
            "200": {"description": "The answer", "content": _content(path.answer)},
            **{
                status: {"description": text, "content": _content("Error")}
                for status, text in sorted((_REFUSALS | (_OF_BODIES if path.takes else {})).items())
            },
        },
    }
    if path.takes:
        content: dict[str, Any] = {media_type: {} for media_type in path.takes}
        told["requestBody"] = {"required": True, "content": content}
    return told


def _content(answer: str) -> dict[str, Any]:
    if "/" in answer:
        return {answer: {"schema": {"type": "string"}}}
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{answer}"}}}
