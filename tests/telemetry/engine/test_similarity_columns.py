"""Keys made in columns are equal where the keys of single jobs are."""

from collections.abc import Sequence

import polars as pl
from hypothesis import example, given, settings
from hypothesis import strategies as st

from telemetry.engine.similarity import keys_of
from telemetry.engine.similarity_columns import KINDS, key_columns

WORDS = st.sampled_from(
    [
        "sbatch", "srun", "/usr/bin/sbatch", "-p", "gpu", "--mem=4G", "--wrap", "--wrap=python", "python", "train.py",
        "./run.sh", "/n/home/ada/run.sh", "--seed", "3", "1e-4", "1E5", "0.5", "deadbeef01", "abcd/x/1234",
        "'a b'", '"', "\\", "a\u00a0b", "\u0663", "caf\u00e9", "env", "X=1", "timeout", "10m", "~/a/b", "../x", "a//b",
        "DEADBEEFFF", "a=/b/c,/d", "x1y2", "&&", "-",
    ]
)  # fmt: skip
SPACES = st.sampled_from([" ", "  ", "\t", "\n", "\x1f"])
LINES = st.lists(st.tuples(WORDS, SPACES), max_size=7).map(lambda parts: "".join(word + space for word, space in parts))
FOLDERS = st.sampled_from(["", "/home/ada", "/home/ada/", "/", "/home/b\u00f6"])


@settings(max_examples=300, deadline=None)
@given(jobs=st.lists(st.tuples(LINES | st.text(max_size=30), FOLDERS), max_size=12))
@example(jobs=[("sbatch run.sh", "/a"), ("sbatch x" + "y" * 5000, "/a/"), ("sbatch x" + "y" * 4999, "")])
@example(jobs=[("sbatch abcd/x/1234", ""), ("sbatch #", ""), ("sbatch 1", "")])
def test_jobs_are_alike_as_one_by_one(jobs: Sequence[tuple[str, str]]) -> None:
    frame = pl.DataFrame(jobs, schema={"submit_line": pl.String, "work_dir": pl.String}, orient="row")
    made = key_columns(frame)
    single = [keys_of(*job) for job in jobs]
    for at, kind in enumerate(KINDS):
        pairs = set(zip((keys[at] for keys in single), made[kind].to_list(), strict=True))
        assert len(pairs) == len({one for one, _ in pairs}) == len({one for _, one in pairs}), kind
        assert all((one == 0) == (other == 0) for one, other in pairs), kind
