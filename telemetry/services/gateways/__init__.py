"""Access logs of gateways: reading them, and the sessions, submissions and days that they tell of."""

from telemetry.services.gateways.files import Asked, GatewaySummary, import_gateway_log

__all__ = ["Asked", "GatewaySummary", "import_gateway_log"]
