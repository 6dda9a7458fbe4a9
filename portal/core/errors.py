"""Errors of the domain. Each says what happened, a stable code, and what would make it pass (RFC 9457).

Services raise these; `portal.core.problems` turns them into problem+json or a page. Nothing else decides a status.
"""

from typing import Any


class DomainError(Exception):
    """Base of every refusal. `code` is stable, `detail` is one plain sentence, `remedy` says what to do."""

    status = 400
    title = "Refused"
    code = "refused"

    def __init__(
        self,
        detail: str,
        *,
        code: str = "",
        remedy: str = "",
        retry_after_s: int | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.code
        self.remedy = remedy
        self.retry_after_s = retry_after_s
        self.extra = extra or {}

    @property
    def words(self) -> str:
        """What happened and what to do, as one text."""
        return f"{self.detail} {self.remedy}".strip()


class Unauthenticated(DomainError):
    """No token, or one that does not verify."""

    status, title, code = 401, "Not signed in", "unauthenticated"


class NotAllowed(DomainError):
    """The actor is known and may not do this."""

    status, title, code = 403, "Not allowed", "not_allowed"


class NotFound(DomainError):
    """No such thing, or none that this actor may know of."""

    status, title, code = 404, "Not found", "not_found"


class Conflict(DomainError):
    """The thing is in a state that does not admit this."""

    status, title, code = 409, "Conflict", "conflict"


class TooLarge(DomainError):
    """The body is larger than the portal takes."""

    status, title, code = 413, "Too large", "too_large"


class Invalid(DomainError):
    """The request is understood and its content is wrong."""

    status, title, code = 422, "Invalid", "invalid"


class TooMany(DomainError):
    """A limit is reached; waiting helps."""

    status, title, code = 429, "Too many requests", "too_many_requests"

    def __init__(self, detail: str, *, retry_after_s: int, **kwargs: Any) -> None:
        super().__init__(detail, retry_after_s=max(1, retry_after_s), **kwargs)
