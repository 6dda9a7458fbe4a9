"""The content security policy as one dict, whatever package sends the header."""

from typing import Any

from csp.constants import NONCE, NONE, SELF

# Plotly puts its rules into a stylesheet that the page offers with a nonce; everything else is an external file.
POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "manifest-src": [SELF],
    }
}
