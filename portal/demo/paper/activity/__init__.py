"""What collectors on the login nodes would have sent of the same people, agents and sessions (§III-B, §V, §VII)."""
