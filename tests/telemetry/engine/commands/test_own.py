"""What starts counts once: for its own program, and for nothing where it is there to start another."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.commands import catalogue, classify, own_command, own_command_by_name


@pytest.mark.parametrize(
    "line",
    [
        "env A=1 squeue", "timeout 30 squeue", "sudo -u someone squeue", "nohup squeue", "setsid -w squeue",
        "xargs -n 1 squeue -j", "watch -n 5 squeue", "bash -c 'squeue; ls'", "sh -ec squeue", "-bash -lc squeue",
        "/usr/bin/env python3 train.py", "flock /tmp/lock squeue", "strace -f squeue", "nice bash -c 'squeue'",
        "/bin/sh /opt/gatehouse/agent-path/squeue -j 7", "/bin/sh /usr/bin/egrep x a", "bash /usr/bin/zgrep x a.gz",
    ],
)  # fmt: skip
def test_what_starts_another_program_counts_for_nothing(line: str) -> None:
    assert own_command(shlex.split(line)) is None


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("squeue --me", "squeue"), ("/usr/bin/grep -rn x .", "grep"), ("env", "env"), ("nice", "nice"),
        ("bash", "bash"), ("-zsh", "zsh"), ("bash job.sh", "bash"), ("bash -c ''", "bash"),
        ("python3 train.py", "python"), ("python3 -c 'import pip'", "python"), ("python3 -m pip install x", "pip"),
        ("node /usr/lib/node_modules/npm/bin/npm-cli.js ci", "npm"), ("/bin/sh /usr/bin/zcat a.gz", "zcat"),
        ("bash /usr/bin/which ls", "which"), ("perl /usr/bin/autoconf", "autoconf"), ("busybox ls -l", "ls"),
        ("busybox sh", "sh"), ("busybox", "busybox"), ("./solver --in x", ""),
    ],
)  # fmt: skip
def test_a_program_counts_for_itself(line: str, program: str) -> None:
    found = own_command(shlex.split(line))
    assert found is not None and found.program == program


def test_the_readers_of_the_queue_are_no_queries() -> None:
    for line in ("gatehouse squeue -j 7", "/usr/bin/python3 /opt/gatehouse/bin/gatehouse sacct -X"):
        found = own_command(shlex.split(line))
        assert found is not None and not found.traits
        assert not classify(shlex.split(line))[0].traits
    script = own_command(["/bin/sh", "/usr/local/bin/squeue", "-j", "7"])  # a site's own wrapper
    assert script is not None and script.traits == {"scheduler_query"}


def test_it_has_the_traits_of_its_words() -> None:
    found = own_command(["rm", "-rf", "/results/"])
    assert found is not None and found.traits == {"rm_force", "rm_root"}
    found = own_command(["python3", "-m", "pip", "install", "x"])
    assert found is not None and (found.category, found.fetch) == ("packages", "code")


@pytest.mark.parametrize(
    ("name", "category", "traits"),
    [
        ("squeue", "slurm", {"scheduler_query"}), ("rm", "text", set()), ("find", "text", set()),
        ("tree", "text", {"tree_walk"}), ("python3.11", "interpreters", set()), ("my-solver", "other", set()),
    ],
)  # fmt: skip
def test_a_name_alone_tells_what_needs_no_other_word(name: str, category: str, traits: set[str]) -> None:
    found = own_command_by_name(name)
    assert found is not None and (found.category, found.traits) == (category, traits)


@pytest.mark.parametrize("name", ["bash", "sh", "env", "timeout", "xargs"])
def test_a_name_alone_of_what_may_start_others_counts_for_nothing(name: str) -> None:
    assert own_command_by_name(name) is None


@given(st.lists(st.text(max_size=40), max_size=12))
def test_nothing_that_is_typed_breaks_it_and_nothing_of_it_is_kept(argv: list[str]) -> None:
    known = catalogue()
    found = own_command(argv)
    assert found is None or found.program in {"", *known.categories, *known.wrappers}


@given(st.lists(st.sampled_from(["squeue", "-n", "5", "ls", "x=1", "--", "grep", "python"]), min_size=1, max_size=6))
def test_what_is_no_wrapper_is_what_its_line_comes_to(argv: list[str]) -> None:
    if argv[0] in {"squeue", "ls", "grep"}:
        assert classify(argv) == (own_command(argv),)


def test_wrappers_without_end_come_to_an_end() -> None:
    assert own_command(["busybox"] * 5000) is not None
    assert own_command([]) is None
