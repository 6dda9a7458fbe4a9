"""Words that rows of `memory` are kept in."""

from django.db import models


class Source(models.TextChoices):
    """Where a claim comes from, and so what it is worth."""

    SCHEDULER = "scheduler", "Scheduler outcome"
    CONFIG = "config", "Configuration file"
    VENDOR_DOC = "vendor_doc", "Vendor’s documentation"
    OPERATOR = "operator", "Operator"
    USER = "user", "User"
    AGENT = "agent", "Agent"
    IMPORTED = "imported", "Imported"


class Scope(models.TextChoices):
    """Who may read a lesson."""

    PROJECT = "project", "Project"
    LAB = "lab", "Lab"
    CLUSTER = "cluster", "Cluster"


class Status(models.TextChoices):
    """Where a lesson stands. Only active ones are found by look-ups."""

    DRAFT = "draft", "Waits for approval"
    ACTIVE = "active", "Active"
    SUPERSEDED = "superseded", "Superseded"
    INVALID = "invalid", "Withdrawn"


class Polarity(models.TextChoices):
    """What a piece of evidence says of the lesson. Its author's own word is the origin, not a confirmation."""

    ORIGIN = "origin", "Recorded"
    CONFIRMS = "confirms", "Confirms"
    REFUTES = "refutes", "Refutes"


class ActorKind(models.TextChoices):
    """Who acted, as the audit trail calls it."""

    USER = "user", "Person"
    AGENT = "agent", "Agent"
    SERVICE = "service", "Service"
    SYSTEM = "system", "System"
