"""Rows of `policies`: the AUP and who accepted it, trial budgets and grants, extensions and their admission."""

from policies.models.aup import AupAcceptance, AupVersion

__all__ = ["AupAcceptance", "AupVersion"]
