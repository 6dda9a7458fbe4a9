"""Tokens: issued by hand, rolled over, given for a login by MUNGE or by code, and those of sub-agents."""
