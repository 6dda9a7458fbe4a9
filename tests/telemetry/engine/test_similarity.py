"""Jobs that are alike have equal keys, from the same command to the same application."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.similarity import Keys, Parts, _words, application_of, keys_of, take_apart, template_of


def equal(first: Keys, second: Keys) -> set[str]:
    return {name for name, a, b in zip(Keys._fields, first, second, strict=True) if a == b != 0}


@pytest.mark.parametrize(
    ("line", "command", "program"),
    [
        ("sbatch run.sh", "run.sh", "run.sh"),
        ("sbatch -p gpu --mem=4G -c 8 run.sh --steps 10", "run.sh --steps 10", "run.sh"),
        ("sbatch --partition gpu --time 10 /n/home/ada/run.sh a b", "/n/home/ada/run.sh a b", "/n/home/ada/run.sh"),
        ("sbatch -pgpu -W --parsable run.sh", "run.sh", "run.sh"),
        ("/usr/bin/sbatch --exclusive --requeue run.sh", "run.sh", "run.sh"),
        ("sbatch --wrap 'python  train.py --lr 0.1'", "python train.py --lr 0.1", "python"),
        ("sbatch -n 2 --wrap python train.py --seed 3", "python train.py --seed 3", "python"),  # as accounting has it
        ("sbatch --wrap=sleep 20", "sleep 20", "sleep"),
        ("sbatch --nice --x11 run.sh", "run.sh", "run.sh"),
        ("srun --exact ./app in.dat", "./app in.dat", "./app"),
        ("srun --pty -n 4 gmx_mpi mdrun -s x.tpr", "gmx_mpi mdrun -s x.tpr", "gmx_mpi"),
        ("sbatch", "", ""),
        ("", "", ""),
        ("sbatch --wrap 'echo a", "'echo a", "'echo"),
        ("./run.sh 1", "./run.sh 1", "./run.sh"),
    ],
)
def test_a_submit_line_is_taken_apart(line: str, command: str, program: str) -> None:
    assert take_apart(line) == Parts(command, program)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py --seed 3", "train.py"),
        ("python3.11 -u /n/home/ada/train.py", "train.py"),
        ("OMP_NUM_THREADS=4 srun -n 4 gmx_mpi mdrun", "gmx_mpi"),
        ("mpirun -np 8 ./vasp_std", "vasp_std"),
        ("timeout 60 env A=b lmp -in x", "lmp"),
        ("python -m pytest -q", "pytest"),
        ("python -c 'print(1)'", "python"),
        ("bash -lc ./go.sh", "go.sh"),
        ("apptainer exec --nv -B /a:/b image.sif python train.py", "train.py"),
        ("apptainer run image.sif", ""),
        ("srun -p gpu -n 4 ./app", "app"),
        ("conda run -n myenv gmx mdrun", "gmx"),
        ("timeout 10m python x.py", "x.py"),
        ("run_17.sh", "run_#.sh"),
        ("", ""),
        ("-n 4", ""),
    ],
)
def test_the_application_is_what_a_command_runs_in_the_end(command: str, name: str) -> None:
    assert application_of(command) == name


@pytest.mark.parametrize(
    ("command", "template"),
    [
        ("python train.py --seed 3 --lr 1e-4", "python train.py --seed # --lr #"),
        ("run.sh /scratch/ada/a1/in.dat", "run.sh in.dat"),
        ("run.sh --id=3f2b8c1d-aaaa-bbbb-cccc-0123456789ab", "run.sh --id=#"),
        ("go ~/x/y.sh --out=/tmp/q/z.txt", "go y.sh --out=z.txt"),
    ],
)
def test_a_template_leaves_out_what_varies(command: str, template: str) -> None:
    assert template_of(command) == template


def test_each_step_forgives_more_than_the_one_before() -> None:
    base = keys_of("sbatch -p gpu --wrap 'python train.py --seed 1'", "/n/home/ada/p")
    same = keys_of("sbatch  -p gpu --wrap 'python train.py --seed 1'", "/n/home/ada/p/")
    assert equal(base, same) == set(Keys._fields)
    other_options = keys_of("sbatch -p cpu --wrap 'python train.py --seed 1'", "/n/home/bob/q")
    assert equal(base, other_options) == {"command", "script", "template", "application"}
    other_seed = keys_of("sbatch -p gpu --wrap 'python train.py --seed 2'", "/n/home/bob/q")
    assert equal(base, other_seed) == {"script", "template", "application"}
    other_folder = keys_of("sbatch --wrap '/opt/venv/bin/python3 -u /n/x/train.py --epochs 9 --fast'", "/n/home/eve")
    assert equal(base, other_folder) == {"application"}
    assert equal(base, keys_of("sbatch --wrap 'gmx mdrun'", "/n/home/ada/p")) == {"work_dir"}


def test_nothing_is_like_nothing() -> None:
    assert keys_of("", "") == Keys(0, 0, 0, 0, 0, 0)
    assert equal(keys_of("", ""), keys_of("", "")) == set()


def test_equal_texts_of_two_kinds_have_two_keys() -> None:
    keys = keys_of("x", "x")
    assert len({*keys} - {0}) == 6


WORDS = st.lists(st.text("ab1 -='\"\\\\/.", max_size=8), max_size=5)


@given(WORDS)
def test_words_are_those_of_a_shell(words: list[str]) -> None:
    line = " ".join(map(shlex.quote, words))
    assert _words(line) == words


@given(st.text(), st.text())
def test_any_text_has_keys_of_64_bits(line: str, folder: str) -> None:
    keys = keys_of(line, folder)
    assert all(-(2**63) <= key < 2**63 for key in keys)
    assert keys == keys_of(line, folder)
