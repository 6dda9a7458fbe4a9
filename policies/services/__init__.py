"""Verbs of `policies`, called through this module: `policy_services.accept_aup(actor=…, …)`."""

from policies.services.aup import accept_aup, current_aup, publish_aup

__all__ = ["accept_aup", "current_aup", "publish_aup"]
