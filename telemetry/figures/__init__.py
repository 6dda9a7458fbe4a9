"""Named figures: what each says, over whom, and the rows behind it. Every page and report takes its numbers here."""

from dataclasses import replace

from telemetry.figures import (
    acceptance,
    attribution,
    behaviour,
    commands,
    extensions,
    gpu,
    iteration,
    load,
    out_of_memory,
    places,
    repeated_failures,
    scheduler,
    telling,
)
from telemetry.figures.kinds import Column, Figure, Measured, Number, Row, Section, Unit, drill_query
from telemetry.figures.readings import Readings, readings_of

__all__ = [
    "FIGURES", "Column", "Figure", "Measured", "Number", "Readings", "Row", "Section", "Unit", "drill_query", "measure",
    "measure_figure", "readings_of",
]  # fmt: skip

FIGURES: dict[str, Figure] = {
    figure.key: replace(figure, limit=figure.limit or part.LIMIT)
    for part in (
        load,
        attribution,
        places,
        behaviour,
        iteration,
        out_of_memory,
        repeated_failures,
        scheduler,
        commands,
        extensions,
        gpu,
        telling,
        acceptance,
    )
    for figure in part.FIGURES
}

_FACILITY_ONLY = "Measured for the whole facility only."


def measure(key: str, readings: Readings) -> Measured | None:
    """Measure a figure; None where it is not measured yet (its `needs` says why). An unknown key raises KeyError."""
    return measure_figure(FIGURES[key], readings)


def measure_figure(figure: Figure, readings: Readings) -> Measured | None:
    """Measure a figure, of whatever app it is; None where it is not measured yet."""
    if figure.measure is None:
        return None
    scope = readings.scope
    if figure.facility_only and (scope.lab is not None or not scope.actor.sees_facility):
        return Measured(None, note=_FACILITY_ONLY)
    return figure.measure(readings)
