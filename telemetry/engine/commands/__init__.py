"""What a command line is for: categories, traits that figures count, and nothing of its words."""

from telemetry.engine.commands.catalogue import Catalogue, catalogue
from telemetry.engine.commands.classify import Command, classify
from telemetry.engine.commands.own import own_command, own_command_by_name

__all__ = ["Catalogue", "Command", "catalogue", "classify", "own_command", "own_command_by_name"]
