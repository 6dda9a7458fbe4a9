"""Login nodes: how collectors do, which sessions are open, who drives what runs there, and which studies run."""

from collections.abc import Mapping
from typing import Any, Final

from django.http.response import HttpResponseBase
from django.shortcuts import render

from portal.core import clock, exports
from portal.dashboard import formats
from principals import permissions
from principals.actors import Actor
from principals.models import Cluster
from principals.web import PageRequest, page
from telemetry.engine.activity import ALL, CATEGORY
from telemetry.figures.attribution import METHODS
from telemetry.figures.load import LABELS
from telemetry.models import BaselineStudy
from telemetry.selectors import MIN_PEOPLE, Period, ratio
from telemetry.selectors.activity import CATEGORIES
from telemetry.selectors.login_nodes import Between, LoginNode, SshNode, composition, login_nodes, ssh_nodes
from telemetry.selectors.methods import newest_methods
from telemetry.selectors.places import PlaceLoad, read_places

DAYS: Final = 7
STUDIES: Final = 20
COLUMNS: Final = (
    "cluster", "host", "state", "heard", "mode", "version", "study", "lag_s", "clock_ahead_s", "batches", "events",
    "lost", "argv_missed", "vanished", "sampled_share", "rejected", "cpu_share", "memory_bytes", "processes",
    "registered", "unregistered",
)  # fmt: skip


@page
def show_login_nodes(request: PageRequest) -> HttpResponseBase:
    """Show the nodes whose collectors were heard; `?format=` exports them."""
    actor = request.actor
    permissions.require(actor, "ingest.look", remedy="Research-computing staff and auditors see the collectors.")
    period = Period.last_days(DAYS)
    nodes = login_nodes(actor, period)
    if wanted := request.GET.get("format"):
        columns = (*COLUMNS, *(f"{driver}_commands" for driver in LABELS))
        return exports.export(wanted, "login-nodes", columns, map(_record, nodes))
    composed = composition(actor, period)
    context = {
        "nodes": nodes, "kpis": _kpis(nodes), "evidence": _evidence(actor),
        "composition": _categories(composed), "drivers": _drivers(composed),
        "places": _places(read_places(actor, period)),
        "over_ssh": [_over_ssh(node) for node in ssh_nodes(actor, period)],
        "studies": BaselineStudy.objects.visible_to(actor).select_related("cluster").order_by("-starts")[:STUDIES],
        "period": formats.date_range(period.first, period.last), "now": clock.now(),
    }  # fmt: skip
    return render(request, "ingest/login_nodes.html", context)


def _evidence(actor: Actor) -> list[dict[str, Any]]:
    """Return how the newest jobs of each cluster were attributed: rows of the kinds of evidence there were."""
    found = []
    for cluster in Cluster.objects.order_by("name"):
        counts = newest_methods(actor, cluster)
        total = sum(counts.values())
        rows = [
            {"title": method.title, "doubt": method.doubt, "jobs": counts[key], "share": ratio(counts[key], total)}
            for key, method in METHODS.items()
            if counts.get(key)
        ]
        found.append({"cluster": cluster.name, "anchor": f"evidence-{cluster.name}", "rows": rows})
    return found


def _record(node: LoginNode) -> dict[str, Any]:
    commands = {f"{driver}_commands": node.commands.of(driver) for driver in LABELS}
    return {name: getattr(node, name) for name in COLUMNS} | {"state": str(node.state)} | commands


def _kpis(nodes: list[LoginNode]) -> dict[str, Any]:
    commands = sum(node.commands.total for node in nodes)
    unknown = sum(node.commands.of("unknown") for node in nodes)
    return {
        "registered": sum(node.registered for node in nodes),
        "unregistered": sum(node.unregistered for node in nodes),
        "lost": sum(node.lost for node in nodes), "missed": sum(node.argv_missed for node in nodes),
        "events": sum(node.events for node in nodes), "commands": commands, "unknown_share": ratio(unknown, commands),
    }  # fmt: skip


def _places(found: Mapping[str, PlaceLoad]) -> list[PlaceLoad]:
    """Return the places, where anything is seen at any of them."""
    return list(found.values()) if any(load.is_watched for load in found.values()) else []


def _over_ssh(node: SshNode) -> dict[str, Any]:
    """Return a node's row; numbers of keys and machines stand for people, and few are not told."""
    different = {name: _between(getattr(node, name)) for name in ("keys", "clients", "pairs")}
    return {"node": node, "untold_share": ratio(node.untold, node.connections)} | different


def _between(number: Between | None) -> str:
    if number is None:
        return "not read"
    if number.low < MIN_PEOPLE:
        return f"fewer than {MIN_PEOPLE}" if number.high < MIN_PEOPLE else f"at most {number.high:,}"
    return f"{number.low:,}" if number.low == number.high else f"{number.low:,} to {number.high:,}"


def _drivers(composed: dict[str, dict[str, int]]) -> list[dict[str, Any]]:
    """Return the columns of the composition: each driver and its commands."""
    return [
        {"kind": driver, "label": label, "commands": composed.get(driver, {}).get(ALL, 0)}
        for driver, label in LABELS.items()
    ]


def _categories(composed: dict[str, dict[str, int]]) -> list[dict[str, Any]]:
    """Return the rows of the composition: each category with its share of every driver's commands."""
    return [
        {
            "title": title,
            "cells": [
                {
                    "label": label, "commands": counts.get(CATEGORY + slug, 0),
                    "share": ratio(counts.get(CATEGORY + slug, 0), counts.get(ALL, 0)),
                    "fill": {"agent": "agent", "human": "human"}.get(driver, "mute"),
                }
                for driver, label in LABELS.items()
                for counts in (composed.get(driver, {}),)
            ],
        }
        for slug, title in CATEGORIES.items()
    ]  # fmt: skip
