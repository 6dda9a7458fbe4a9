"""Access logs of gateways: Open OnDemand, JupyterHub and FirecREST, line by line, into one normal form.

Of a line its second, its login name, the program behind it and what it asked for in one word are kept; never an
address, a path or a query.
"""

from telemetry.engine.gateways.agents import Client, client_of
from telemetry.engine.gateways.lines import KINDS, SET_ASIDE, Passed, Reading, Request, Unread, read_line

__all__ = ["KINDS", "SET_ASIDE", "Client", "Passed", "Reading", "Request", "Unread", "client_of", "read_line"]
