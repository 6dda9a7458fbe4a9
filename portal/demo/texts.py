"""What people and agents write: job names, submit lines, work folders; and now and then a key that has no place there.

The keys are made of random letters when the facility is built. They open nothing; they show that redaction works.
"""

import string
from random import Random
from typing import Final

from portal.demo import cast
from portal.demo.drafts import Draft
from portal.demo.plan import AGENT, PARTITIONS

_LETTERS: Final = string.ascii_letters
_ALNUM: Final = string.ascii_letters + string.digits
_HEX: Final = "0123456789abcdef"
_ENTRIES: Final = ("fit.py", "sweep.py", "check_inputs.py", "train.py", "convert.py")


def job_name(rng: Random, draft: Draft) -> str:
    """Name the jobs of a batch after what the lab does."""
    if draft.actor != AGENT and draft.batch.size == 1 and draft.shape.partition == "test":
        return "bash"
    name = rng.choice(cast.LAB_OF[draft.batch.login].jobs)
    if draft.shape.qos == "trial" or draft.shape.partition == "test":
        return f"{name}_try{rng.randrange(1, 9)}"
    return name


def work_dir(rng: Random, draft: Draft, name: str) -> str:
    """Return the folder that a batch is submitted from."""
    lab = cast.LAB_OF[draft.batch.login]
    return f"/n/{lab.name}/{lab.project}/{draft.batch.login}/{name.partition('.')[0]}_{rng.randrange(1, 60):02}"


def hms(seconds: int) -> str:
    """Write a duration as Slurm does: D-HH:MM:SS."""
    days, rest = divmod(seconds, 86_400)
    text = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def submit_line(rng: Random, draft: Draft, name: str, *, with_secret: bool) -> str:
    """Write the command line that submitted a batch."""
    shape, size = draft.shape, draft.batch.size
    if name == "bash":
        return f"srun -p {shape.partition} -c {shape.cpus} -t {hms(draft.limit_s)} --pty bash"
    words = ["sbatch", f"--partition={shape.partition}", f"--time={hms(draft.limit_s)}", f"--job-name={name}"]
    if shape.gpus:
        per_node = shape.gpus // shape.nodes
        words.append(f"--gres=gpu:{PARTITIONS[shape.partition].gpu_type}:{per_node}")
    if shape.nodes > 1:
        words.append(f"--nodes={shape.nodes}")
    if shape.qos != "normal":
        words.append(f"--qos={shape.qos}")
    if size > 1:
        words.append(f"--array=0-{size - 1}" + (f"%{rng.choice((4, 8, 16))}" if rng.random() < 0.3 else ""))
    if with_secret:
        return _leak(rng, words, name)
    return " ".join([*words, _script(rng, draft, name)])


def _script(rng: Random, draft: Draft, name: str) -> str:
    if draft.actor == AGENT and rng.random() < 0.3:
        steps = rng.choice((50, 200, 1000))
        return f'--wrap="python -u {rng.choice(_ENTRIES)} --seed {rng.randrange(100)} --steps {steps}"'
    return f"{name.partition('_try')[0]}.sh"


def _leak(rng: Random, words: list[str], name: str) -> str:
    kind = rng.randrange(4)
    if kind == 0:
        return f"{words[0]} --export=ALL,WANDB_API_KEY={_draw(rng, _HEX, 40)} {' '.join(words[1:])} {name}.sh"
    if kind == 1:
        return f"{words[0]} --export=ALL,HF_TOKEN=hf_{_draw(rng, _LETTERS, 34)} {' '.join(words[1:])} {name}.sh"
    if kind == 2:
        token = "ghp_" + _draw(rng, _ALNUM, 36)
        return (
            f"{' '.join(words)} --wrap=\"curl -sS -H 'Authorization: token {token}' https://git.example.org/dispatch\""
        )
    return f'{" ".join(words)} --wrap="python -u upload.py --password {_draw(rng, _ALNUM, 14)}7x"'


def _draw(rng: Random, alphabet: str, length: int) -> str:
    return "".join(rng.choices(alphabet, k=length))


def node_list(rng: Random, partition: str, nodes: int) -> str:
    """Name the nodes a job got, as Slurm shortens them."""
    place = PARTITIONS[partition]
    first = rng.randrange(1, place.nodes - nodes + 2)
    if nodes == 1:
        return f"{place.prefix}{first:03}"
    return f"{place.prefix}[{first:03}-{first + nodes - 1:03}]"
