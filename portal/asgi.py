"""The ASGI entry point: HTTP through Django, WebSockets through `portal.realtime`."""

import os

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

http = get_asgi_application()

# Consumers import models, so they come after the applications are loaded.
from portal.realtime.routing import websocket  # noqa: E402

application = ProtocolTypeRouter({"http": http, "websocket": websocket})
