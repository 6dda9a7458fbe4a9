"""What is shown once: the form that was answered with a secret is not answered again when its page is reloaded."""

import hashlib

from django.http import HttpRequest

SHOWN = "tokens_shown"  # in a session: digests of the forms that were answered with a secret
SHOWN_KEPT = 20


def is_repeated(request: HttpRequest) -> bool:
    """Say whether this very form was answered with a secret: whoever reloads that page sends it again."""
    return _digest(request) in request.session.get(SHOWN, [])


def remember(request: HttpRequest) -> None:
    """Note that this form is answered with a secret."""
    request.session[SHOWN] = [*request.session.get(SHOWN, []), _digest(request)][-SHOWN_KEPT:]


def _digest(request: HttpRequest) -> str:
    # Each drawn form has a csrf token of its own: the same wish from a fresh page is another form.
    return hashlib.sha256(request.POST.urlencode().encode()).hexdigest()
