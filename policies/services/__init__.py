"""Verbs of `policies`, called through this module: `policy_services.accept_aup(actor=…, …)`."""

from policies.services.aup import (
    accept_aup,
    accept_aup_for_mine,
    aup_in_force,
    current_aup,
    export_acceptances,
    hold_lapsed_aup,
    publish_aup,
    read_policy,
)
from policies.services.aup_budget import questions_a_minute, sessions_on_a_node
from policies.services.aup_drafts import change_aup_draft, drop_aup_draft, publish_aup_draft, start_aup_draft
from policies.services.aup_export import Exported, export_policy, sign_policy
from policies.services.aup_reminders import remind_of_aup
from policies.services.extensions import Submission, decide_extension, revoke_extension, submit_extension
from policies.services.settling import Settled, settle_trials
from policies.services.trial_limits import drop_trial_limits, set_trial_limits
from policies.services.trials import TrialOutcome, TrialWish, cancel_trial, request_trial

__all__ = [
    "Exported",
    "Settled",
    "Submission",
    "TrialOutcome",
    "TrialWish",
    "accept_aup",
    "accept_aup_for_mine",
    "aup_in_force",
    "cancel_trial",
    "change_aup_draft",
    "current_aup",
    "decide_extension",
    "drop_aup_draft",
    "drop_trial_limits",
    "export_acceptances",
    "export_policy",
    "hold_lapsed_aup",
    "publish_aup",
    "publish_aup_draft",
    "questions_a_minute",
    "read_policy",
    "remind_of_aup",
    "request_trial",
    "revoke_extension",
    "sessions_on_a_node",
    "set_trial_limits",
    "settle_trials",
    "sign_policy",
    "start_aup_draft",
    "submit_extension",
]
