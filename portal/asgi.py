"""The ASGI entry point: HTTP through Django, WebSockets through `portal.realtime`."""

import gc
import os

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application
from websockets import http11

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

# A handshake with longer lines or more headers than this library likes gets no answer from uvicorn 0.54, not even a
# refusal. What reaches it was bounded before: h11 refuses what it cannot finish within 64 KiB and one read (256 KiB).
# So all of that goes on to the consumer, which answers.
http11.MAX_LINE_LENGTH, http11.MAX_NUM_HEADERS = 512 * 1024, 128 * 1024

http = get_asgi_application()

# Consumers import models, so they come after the applications are loaded.
from portal.realtime.routing import websocket  # noqa: E402

application = ProtocolTypeRouter({"http": http, "websocket": websocket})

# Thousands of sockets are millions of objects, and a full collection walks each while nobody is told anything.
# What was loaded by now stays, so it is walked no more; and what a burst of events makes dies before it counts as old.
gc.collect()
gc.freeze()
gc.set_threshold(20_000, 10, 10)
