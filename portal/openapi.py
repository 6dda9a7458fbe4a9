"""The API's own description: what django-ninja writes, put into the words and the form that a client needs.

Operation ids are the names of functions, so that a generated client reads well and does not change when code moves;
failures are documented once, as the media type they really have (RFC 9457); every operation names the scope it asks
for; the document's servers are this portal.
"""

from typing import Any

from django.conf import settings
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from portal.core.problems import EVERY_OPERATION
from principals.auth import requires
from principals.engine.scopes import SCOPES

SECURITY_SCHEME = "token"
TAGS = {
    "principals": "Who a token stands for and what it may do.",
    "events": "Job events instead of polling the scheduler.",
    "telemetry": "Job records and sessions that a site sends, and the jobs an agent may read.",
    "security": "Findings of guards and scanners.",
    "policies": "Trial budgets and admitted extensions.",
    "memory": "Lessons from failures.",
}
_PROBLEM = {"$ref": "#/components/responses/Problem"}


class GatehouseAPI(NinjaAPI):
    """A NinjaAPI that describes itself in full."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._described: dict[str, OpenAPISchema] = {}  # by how it was asked for

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Name an operation after its function: unique in the API, wherever the function lives."""
        return str(operation.view_func.__name__)

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        """Return the OpenAPI document, not to be changed: it takes a second to write, and operations stay the same."""
        if (asked := repr(kwargs)) not in self._described:
            self._described[asked] = self._describe(**kwargs)
        return self._described[asked]

    def _describe(self, **kwargs: Any) -> OpenAPISchema:
        document = super().get_openapi_schema(**kwargs)
        asked = {self.get_openapi_operation_id(operation): _scope(operation) for operation in self._operations()}
        used = set()
        for methods in document["paths"].values():
            for details in methods.values():
                used.update(details.get("tags", ()))
                _describe_failures(details)
                _describe_security(details, asked.get(details["operationId"]))
        document["servers"] = [{"url": settings.BASE_URL}]
        document["tags"] = [{"name": name, "description": words} for name, words in TAGS.items() if name in used]
        document["components"]["responses"] = {"Problem": _problem_response()}
        document["components"]["securitySchemes"] = {SECURITY_SCHEME: _security_scheme()}
        return document

    def _operations(self) -> list[Operation]:
        return [
            operation
            for bound in self._get_bound_routers()
            for view in bound.path_operations.values()
            for operation in view.operations
        ]


def _scope(operation: Operation) -> str | None:
    scopes = [each.scope for each in operation.auth_callbacks if isinstance(each, requires)]
    return scopes[0] if scopes else None


def _describe_failures(details: dict[str, Any]) -> None:
    for status in details["responses"]:
        if int(status) in EVERY_OPERATION:
            details["responses"][status] = _PROBLEM


def _describe_security(details: dict[str, Any], scope: str | None) -> None:
    if scope is None:
        details["security"] = []  # it is how a token is got
        return
    details["security"] = [{SECURITY_SCHEME: [scope]}]
    words = f"Needs the scope `{scope}`: to {SCOPES[scope].words}."
    details["description"] = "\n\n".join(filter(None, (details.get("description"), words)))


def _problem_response() -> dict[str, Any]:
    return {
        "description": "Refused or failed: `code` is stable, `remedy` says what would make it pass.",
        "headers": {
            "Retry-After": {
                "description": "Seconds after which waiting may have helped; always there with 429.",
                "schema": {"type": "integer", "minimum": 0},
            }
        },
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def _security_scheme() -> dict[str, Any]:
    return {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of an agent (made on My lab) or of site automation, in the header `Authorization`. "
        "Its scopes say what it may do: "
        + "; ".join(f"`{scope.name}`: {scope.words}" for scope in SCOPES.values())
        + ".",
    }
