"""Sessions of agents: recorded as told or seen, paired, checked in and out, claimed by their owners."""
