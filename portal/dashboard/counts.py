"""How many things wait behind the entries of the rail, asked of the apps that know."""

from portal.dashboard.shell import Count, register_count
from principals.models import User
from principals.permissions import actor_for_user
from security import figures as security_figures


def incidents(user: User) -> Count:
    """Count the open incidents this person may see; due where one is past its time."""
    waiting, late = security_figures.waiting(actor_for_user(user))
    return Count(waiting, due=late > 0)


def register() -> None:
    """Let the frame ask."""
    register_count("incidents", incidents)
    register_count("own-incidents", incidents)
