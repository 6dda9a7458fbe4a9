"""Verbs of `policies`, called through this module: `policy_services.accept_aup(actor=…, …)`."""

from policies.services.aup import accept_aup, current_aup, publish_aup
from policies.services.extensions import Submission, decide_extension, revoke_extension, submit_extension
from policies.services.settling import Settled, settle_trials
from policies.services.trial_limits import drop_trial_limits, set_trial_limits
from policies.services.trials import TrialOutcome, TrialWish, cancel_trial, request_trial

__all__ = [
    "Settled",
    "Submission",
    "TrialOutcome",
    "TrialWish",
    "accept_aup",
    "cancel_trial",
    "current_aup",
    "decide_extension",
    "drop_trial_limits",
    "publish_aup",
    "request_trial",
    "revoke_extension",
    "set_trial_limits",
    "settle_trials",
    "submit_extension",
]
