"""Ask PySlurm one question and print its answer as JSON: a program of its own, which nothing imports.

PySlurm is GPL-2.0-only and loads Slurm's library into its process; a crash of that ends this process alone. It needs
the standard library and PySlurm, and runs with any Python that PySlurm runs with. One argument: a JSON object with
`question`, with `fields`, the attributes that are wanted of each object, and for `accounting` with `ids` or with
`first` and `last` (UTC epoch seconds). It prints `{"pyslurm": VERSION, "answer": …}` and ends with

0  an answer was printed
1  Slurm or PySlurm failed: the last words on standard error say how
3  there is no PySlurm here
4  PySlurm does not fit: its library cannot be loaded, or it has another interface than that of 25.11

Interface: PySlurm 25.11's documentation, `pyslurm.Jobs`, `pyslurm.db.Jobs`, `pyslurm.slurmctld.Config` and so on.
"""

import importlib
import json
import sys
from typing import Any

MISSING, UNFIT = 3, 4


def main(argument: str) -> int:
    """Answer the question of an argument; return the status to end with."""
    request = json.loads(argument)
    try:
        pyslurm = importlib.import_module("pyslurm")
    except ModuleNotFoundError as error:
        return _fail(MISSING if error.name == "pyslurm" else UNFIT, error)
    except ImportError as error:
        return _fail(UNFIT, error)
    try:
        answer = {"pyslurm": pyslurm.__version__, "answer": _answer(pyslurm, request)}
    except AttributeError as error:
        return _fail(UNFIT, error)
    except pyslurm.PyslurmError as error:
        return _fail(1, error)
    print(json.dumps(answer, default=_plain))  # noqa: T201 - what it is for
    return 0


def _answer(pyslurm: Any, request: dict[str, Any]) -> Any:
    question, fields = request["question"], request["fields"]
    if question == "config":
        return _pick(pyslurm.slurmctld.Config.load(), fields)
    if question == "statistics":
        return _pick(pyslurm.slurmctld.Statistics.load(), fields)
    return [_pick(each, fields) for each in _load(pyslurm, request).values()]


def _load(pyslurm: Any, request: dict[str, Any]) -> Any:
    question = request["question"]
    if question == "accounting":
        # Named as PySlurm's filter names them; one of which nothing is asked must not be set.
        given = {"ids": request.get("ids"), "start_time": request.get("first"), "end_time": request.get("last")}
        wanted = {name: value for name, value in given.items() if value is not None}
        return pyslurm.db.Jobs.load(pyslurm.db.JobFilter(**wanted))
    collections = {
        "queue": lambda: pyslurm.Jobs, "nodes": lambda: pyslurm.Nodes, "partitions": lambda: pyslurm.Partitions,
        "qos": lambda: pyslurm.db.QualitiesOfService, "associations": lambda: pyslurm.db.Associations,
    }  # fmt: skip
    return collections[question]().load()


def _pick(item: Any, fields: list[str]) -> dict[str, Any]:
    picked = {name: getattr(item, name) for name in fields}
    if "steps" in picked:  # their names are all that is wanted
        picked["steps"] = {str(name): {} for name in picked["steps"]}
    return picked


def _plain(item: Any) -> Any:
    """Turn an object of PySlurm into what JSON knows; one that cannot be says its name, which a reader refuses."""
    return item.to_dict() if hasattr(item, "to_dict") else str(item)


def _fail(status: int, error: Exception) -> int:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201 - read by who started it
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
