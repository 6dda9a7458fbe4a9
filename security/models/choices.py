"""The engine's kinds, severities and states as choices of columns."""

from django.db import models

from security.engine import incidents as rules


class Kind(models.TextChoices):
    """What was found."""

    EXPOSED_SECRET = "exposed_secret", rules.KINDS[rules.Kind.EXPOSED_SECRET].label
    UNSAFE_COMMAND = "unsafe_command", rules.KINDS[rules.Kind.UNSAFE_COMMAND].label
    EXPOSED_SERVICE = "exposed_service", rules.KINDS[rules.Kind.EXPOSED_SERVICE].label
    LOGIN_NODE_COMPUTE = "login_node_compute", rules.KINDS[rules.Kind.LOGIN_NODE_COMPUTE].label
    SCRATCH_EVASION = "scratch_evasion", rules.KINDS[rules.Kind.SCRATCH_EVASION].label
    SANDBOX_WIDENING = "sandbox_widening", rules.KINDS[rules.Kind.SANDBOX_WIDENING].label
    POLLING_LOOP = "polling_loop", rules.KINDS[rules.Kind.POLLING_LOOP].label
    OTHER = "other", rules.KINDS[rules.Kind.OTHER].label


class Severity(models.TextChoices):
    """How bad it is."""

    LOW = "low", "Low"
    MEDIUM = "medium", "Medium"
    HIGH = "high", "High"
    CRITICAL = "critical", "Critical"


class State(models.TextChoices):
    """Where an incident stands."""

    NEW = "new", "New"
    TRIAGED = "triaged", "Triaged"
    CONTAINED = "contained", "Contained"
    RESOLVED = "resolved", "Resolved"
    FALSE_ALARM = "false_alarm", "False alarm"
    ACCEPTED = "accepted", "Accepted"
    REOPENED = "reopened", "Reopened"


class Surface(models.TextChoices):
    """The kind of place where something was seen."""

    ARGV = "argv", "Process arguments"
    ENVIRON = "environ", "Process environment"
    PROCESS = "process", "Process tree"
    FILE = "file", "File"
    JOB_OUTPUT = "job_output", "Job output"
    HISTORY = "history", "Shell history"
    NETWORK = "network", "Network port"
    SCHEDULER = "scheduler", "Scheduler"
    OTHER = "other", "Elsewhere"


OPEN = tuple(State(state.value) for state in rules.State if state in rules.OPEN_STATES)
