"""Agents where sites send them: in jobs, over SSH, behind gateways, on hosts of their own. The paper measured none."""
