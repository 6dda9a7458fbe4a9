"""Commands are what they are for, through whatever they are started; nothing of their words is kept."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.commands import Command, catalogue, classify


def only(line: str) -> Command:
    [command] = classify(shlex.split(line))
    return command


@pytest.mark.parametrize(
    ("line", "category", "program"),
    [
        ("head -n 50 run.log", "text", "head"),
        ("/usr/bin/sed -n 1,20p a.py", "text", "sed"),
        ("g++ -O3 main.cpp", "build", "g++"),
        ("x86_64 -V", "other", ""),
        ("gcc-13 -c a.c", "build", "gcc"),
        ("nvcc kernel.cu", "build", "nvcc"),
        ("pip3 install numpy", "packages", "pip"),
        ("micromamba create -n x", "packages", "micromamba"),
        ("git status", "versions", "git"),
        ("squeue --me", "slurm", "squeue"),
        ("vim notes.md", "editors", "vim"),
        ("rsync -a data/ host:data/", "network", "rsync"),
        ("python3.11 train.py", "interpreters", "python"),
        ("Rscript fit.R", "interpreters", "rscript"),
        ("-bash", "interpreters", "bash"),
        ("./my_unpublished_solver --in secret.dat", "other", ""),
    ],
)
def test_a_program_has_its_category(line: str, category: str, program: str) -> None:
    assert (only(line).category, only(line).program) == (category, program)


@pytest.mark.parametrize(
    "line",
    [
        "env A=1 B=2 squeue -j 5", "timeout 30 squeue", "timeout -s KILL -k 5 30 squeue", "sudo -u someone squeue",
        "nice -n 10 squeue", "nohup squeue", "setsid -w squeue", "stdbuf -oL squeue", "watch -n 5 squeue",
        "bash -c 'squeue -u $USER'", "bash -lc 'squeue'", "sh -ec squeue", "A=1 squeue", "xargs -n 1 squeue -j",
        "time -f %e squeue", "env timeout 5 nice bash -c 'exec squeue'",
        "sudo -- squeue", "flock -w 5 /tmp/lock squeue", "strace -f -e trace=open squeue", "taskset 0x3 squeue",
    ],
)  # fmt: skip
def test_what_starts_another_program_is_looked_through(line: str) -> None:
    found = only(line)
    assert (found.program, found.traits) == ("squeue", {"scheduler_query"})


def test_an_interpreter_that_runs_a_tool_is_the_tool() -> None:
    assert only("python3 -m pip install numpy").program == "pip"
    assert only("/opt/conda/bin/python /opt/conda/bin/conda install numpy").fetch == "code"
    assert only("node /usr/lib/node_modules/npm/bin/npm-cli.js ci").program == "npm"
    assert only("perl /usr/bin/autoconf").program == "autoconf"
    assert only("python -c 'import pip'").program == "python"
    assert only("python -u train.py").program == "python"


def test_a_shell_s_text_comes_to_all_its_commands() -> None:
    text = "cd /x && grep -rn TODO src | head -5; rm -f a.o\nsbatch job.sh > id.txt 2>&1 || true"
    assert [each.program for each in classify(["bash", "-c", text])] == ["", "grep", "head", "rm", "sbatch", ""]


def test_a_loop_s_words_are_no_commands() -> None:
    found = classify(["bash", "-lc", "while squeue -h -j 71 | grep -q 71; do sleep 5; done"])
    assert [each.program for each in found] == ["squeue", "grep", "sleep"]
    text = "for f in head tail; do if test -s $f; then wc -l $f; else { cat $f; }; fi; done; case x in ls) ;; esac"
    assert [each.program for each in classify(["bash", "-c", text])] == ["", "wc", "cat"]


@pytest.mark.parametrize(
    ("line", "traits"),
    [
        ("scontrol show job 5", {"scheduler_query"}), ("scontrol sho node", {"scheduler_query"}),
        ("scontrol update job 5 TimeLimit=1", set()), ("sacctmgr list user", {"scheduler_query"}),
        ("sacctmgr -i add user x", set()), ("sacct -X -j 5", {"scheduler_query"}),
        ("sbatch --array 1-9 x.sh", {"submission"}), ("srun -n 4 ./a", {"submission"}), ("scancel 5", {"cancel"}),
        ("scancel -s USR1 5", set()), ("scancel --signal=USR1 5", set()),
        ("find . -name '*.py'", {"tree_walk"}), ("find . -maxdepth 1 -type f", set()), ("ls -laR", {"tree_walk"}),
        ("ls -la", set()), ("tree", {"tree_walk"}), ("du -sh .", {"tree_walk"}),
        ("grep -rn x .", {"recursive_search"}), ("grep -n x a", set()), ("rg x", {"recursive_search"}),
        ("git -C sub grep x", {"recursive_search"}), ("grep --directories=recurse x .", {"recursive_search"}),
        ("sed -i s/a/b/ f", {"edit"}), ("sed -i.bak s/a/b/ f", {"edit"}), ("sed -n 1p f", set()),
        ("sed -e s/i/j/ f", set()), ("sed -ni 1p f", {"edit"}), ("perl -pi -e s/a/b/ f", {"edit"}),
        ("git apply x.diff", {"edit"}), ("patch -p1", {"edit"}),
        ("rm -f a", {"rm_force"}), ("rm -rf build", {"rm_force"}), ("rm -r build", set()), ("rm a", set()),
        ("rm -- -f", set()), ("rm -rf /", {"rm_force", "rm_root"}), ("rm -rf /results/", {"rm_force", "rm_root"}),
        ("rm -r --force //results", {"rm_force", "rm_root"}), ("rm -rf /scratch/me/x", {"rm_force"}),
        ("rm -f /results", {"rm_force"}),
        ("kill -9 123", {"kill"}), ("kill -0 123", set()), ("kill -l", set()), ("pkill -f train", {"kill"}),
        ("git reset --hard HEAD~1", {"git_discard"}), ("git reset HEAD", set()), ("git clean -fd", {"git_discard"}),
        ("git clean -fdn", set()), ("git clean -f", set()), ("git -c a=b clean -xdf", {"git_discard"}),
        ("claude mcp add db", {"mcp"}), ("codex plugins install x", {"plugin"}), ("claude -p 'mcp'", set()),
        ("npx -y @modelcontextprotocol/server-files /x", {"mcp"}), ("uvx mcp-server-git", {"mcp"}),
        ("npx create-app", set()), ("uv tool run mcp_server_time", {"mcp"}),
    ],
)  # fmt: skip
def test_a_command_has_its_traits(line: str, traits: set[str]) -> None:
    assert only(line).traits == traits


@pytest.mark.parametrize(
    ("line", "fetch"),
    [
        ("curl -sSL https://raw.githubusercontent.com/a/b/x.sh", "code"), ("wget https://example.org/data.tgz", "web"),
        ("curl https://duckduckgo.com/html/?q=slurm", "search"), ("curl 'https://www.google.com/search?q=x'", "search"),
        ("curl https://www.google.com/", "web"), ("curl http://localhost:8000/x", ""), ("curl http://10.0.0.7/x", ""),
        ("curl http://login01/x", ""), ("curl --version", ""), ("curl https://[bad", ""),
        ("git clone https://github.com/a/b", "code"), ("git clone git@host:a/b", "code"), ("git clone /srv/repo x", ""),
        ("git pull", "code"), ("git push", ""), ("git log", ""), ("git clone --depth 1 ../other", ""),
        ("pip install x", "code"), ("pip list", ""), ("npx cowsay", "code"), ("npm run build", ""),
        ("uv add x", "code"),
        ("conda env create -f e.yml", "code"), ("apptainer pull docker://x", "code"), ("scp host:x .", ""),
        ("curl https://github.com.evil.example/x", "web"),
    ],
)  # fmt: skip
def test_what_comes_in_has_its_source(line: str, fetch: str) -> None:
    assert only(line).fetch == fetch


def test_the_tools_of_the_table_are_counted_under_one_name() -> None:
    found = {name: only(f"{name} x").tool for name in ("nvim", "vi", "micro", "egrep", "zcat", "gawk", "nano", "ls")}
    assert found == {
        "nvim": "vim", "vi": "vim", "micro": "vim", "egrep": "grep", "zcat": "cat", "gawk": "awk", "nano": "", "ls": "",
    }  # fmt: skip


def test_each_program_has_a_category_that_has_a_title() -> None:
    known = catalogue()
    assert set(known.categories.values()) <= set(known.titles)
    assert set(known.tools) <= set(known.categories) | {"gsed"}
    assert not set(known.wrappers) & set(known.categories)


@given(st.lists(st.text(max_size=40), max_size=12))
def test_nothing_that_is_typed_breaks_it_and_nothing_of_it_is_kept(argv: list[str]) -> None:
    known = catalogue()
    for command in classify(argv):
        assert command.program in {"", *known.categories, *known.wrappers}
        assert command.category in known.titles and command.fetch in {"", "code", "web", "search"}


@given(st.text(max_size=300))
def test_no_shell_s_text_breaks_it(text: str) -> None:
    for command in classify(["bash", "-c", text]):
        assert command.category in catalogue().titles


def test_wrappers_without_end_come_to_an_end() -> None:
    assert len(classify(["env"] * 5000)) <= 1
    assert classify([]) == ()
    text = "bash -c " * 50 + "x"
    assert len(classify(["bash", "-c", text])) == 1


def test_a_line_without_end_is_read_to_a_limit() -> None:
    found = classify(["bash", "-c", "ls; " * 1_000_000])
    assert 0 < len(found) < 10_000
