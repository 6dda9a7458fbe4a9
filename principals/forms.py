"""Forms of `principals`."""

from django.contrib.auth.forms import AuthenticationForm


class SignInForm(AuthenticationForm):
    """Login name and password."""

    error_messages = {
        "invalid_login": "This login and password do not belong together, or the account is switched off.",
        "inactive": "This account is switched off.",
    }
