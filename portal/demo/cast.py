"""Who is who in the demo facility: labs, people with a part to play, and the agents that work for them.

Everything here is invented. People are ids; labs have made-up names.
"""

from typing import Final, NamedTuple

CLUSTER: Final = "aster"
PASSWORD: Final = "gatehouse-demo"  # noqa: S105 - printed on the first start, for a facility that does not exist

# Who can sign in, and as what. Everybody else has no password: hashing one takes 0.2 s.
LOGINS: Final[dict[str, str]] = {
    "u0007": "research-computing staff",
    "u0016": "InfoSec",
    "u0003": "auditor, reads everything and changes nothing",
    "u0398": "PI of Okafor Lab",
    "u0455": "member of Okafor Lab, owner of okafor-docking",
}
STAFF: Final = "u0007"
INFOSEC: Final = "u0016"
INFOSEC_TEAM: Final = (INFOSEC, "u0015")
AUDITOR: Final = "u0003"
OFFICERS: Final = (STAFF, AUDITOR, *INFOSEC_TEAM)

LOGIN_NODES: Final = ("login01", "login02", "login03", "login04", "login05")


class LabPlan(NamedTuple):
    """A lab, its people (the PI first, then the manager) and what its jobs are called."""

    name: str
    title: str
    people: tuple[str, ...]
    jobs: tuple[str, ...]
    project: str

    @property
    def account(self) -> str:
        """The Slurm account that the lab pays for."""
        return f"{self.name}_lab"


class AgentUser(NamedTuple):
    """A person whose work is partly an agent's: with which harness, how much of it, since which day of the window."""

    login: str
    harness: str
    weight: float
    since_day: float


class AgentPlan(NamedTuple):
    """A registered agent. `state` is where its registration stands: active, waiting, held, suspended or retired."""

    name: str
    owner: str
    harness: str
    purpose: str
    hosts: tuple[str, ...]
    partitions: tuple[str, ...] = ("shared", "test")
    autonomy: str = "supervised"
    state: str = "active"
    days_ago: int = 24


def _lab(name: str, people: str, jobs: str, project: str) -> LabPlan:
    return LabPlan(name, f"{name.capitalize()} Lab", tuple(people.split()), tuple(jobs.split()), project)


LABS: Final = (
    _lab("okafor", "u0398 u0421 u0455 u0462 u0470 u0488", "npt_sweep equil_318K dock_batch md_prod_r4", "membrane"),
    _lab("marlowe", "u0090 u0102 u0118 u0127 u0133 u0149", "eval_ablate finetune_lora train_s3 tok_shard", "langmodel"),
    _lab("lindqvist", "u0350 u0377 u0381 u0386 u0392", "unet_train seg_infer patch_aug train_s3", "microscopy"),
    _lab("aldana", "u0219 u0231 u0238 u0244 u0251 u0257", "cfd_mesh_07 les_channel mesh_refine", "turbulence"),
    _lab("ferrant", "u0531 u0540 u0546 u0552 u0561", "snakejob.align snakejob.call fastqc count_mtx", "genomics"),
    _lab("quillon", "u0590 u0611 u0618 u0623 u0637 u0644", "tok_shard dedup_pass build_index filter_lang", "corpora"),
    _lab("vesterholt", "u0720 u0733 u0741 u0746 u0752", "relax_ck12 dft_scf phonon_q relax_ck13", "perovskite"),
    _lab("brannigan", "u0671 u0682 u0690 u0695", "pytest_gpu bench_halo build_wheels ci_smoke", "solvers"),
    _lab("tamsin", "u0760 u0768 u0915 u0921 u0930", "stan_fit bootstrap bash mcmc_chain", "epidemics"),
    _lab("hollis", "u1190 u1204 u1211 u1219 u1226", "wrf_d02_restart wrf_d01 ungrib regrid_mon", "climate"),
    _lab("ibarra", "u1002 u1010 u1017 u1025 u1031", "nbody_z3 halo_find lightcone spec_synth", "halos"),
    _lab("pemberton", "u1102 u1109 u1116 u1124", "cg_polymer lmp_shear umbrella_w rdf_avg", "polymers"),
)  # fmt: skip

# One person in five, as measured on a production cluster (paper, §III-A: 19.5 % of users).
AGENT_USERS: Final = (
    AgentUser("u0421", "claude-code", 2.2, 0.0),
    AgentUser("u0398", "claude-code", 0.8, 6.0),
    AgentUser("u0102", "claude-code", 1.4, 0.0),
    AgentUser("u0231", "claude-code", 2.0, 2.0),
    AgentUser("u0540", "claude-code", 1.2, 9.0),
    AgentUser("u0733", "claude-code", 3.0, 0.0),
    AgentUser("u0768", "claude-code", 0.7, 12.0),
    AgentUser("u0455", "codex", 1.0, 0.0),
    AgentUser("u0611", "codex", 1.6, 3.0),
    AgentUser("u0377", "cursor", 1.0, 0.0),
    AgentUser("u0470", "cursor", 0.7, 8.0),
    AgentUser("u0682", "copilot", 1.0, 0.0),
)
# People of whom no session was ever seen: their jobs stay unattributed.
UNSEEN_USERS: Final = ("u1204", "u1219", "u0930", "u0644", "u1031", "u0392", "u0257", "u0561")

AGENTS: Final = (
    AgentPlan(
        "okafor-md-sweeper", "u0421", "claude-code",
        "Runs NPT temperature sweeps for the membrane project: writes inputs, submits arrays, reads logs, resubmits "
        "with adjusted time steps.",
        ("login03", "login04"), ("gpu_h200", "shared", "test"), "unattended",
    ),
    AgentPlan(
        "okafor-ci", "u0421", "codex", "Builds the lab's code and runs its short tests after each change.",
        ("login03",), ("test",), "unattended", days_ago=29,
    ),
    AgentPlan(
        "okafor-docking", "u0455", "codex", "Docks compound libraries in batches and ranks the poses.",
        ("login01", "login02"), ("gpu_a100", "shared", "test"), days_ago=28,
    ),
    AgentPlan(
        "okafor-forcefield", "u0398", "claude-code", "Fits force-field terms against reference energies.",
        ("login03", "login04"), ("gpu_h200", "shared"), days_ago=22,
    ),
    AgentPlan(
        "okafor-analysis", "u0470", "cursor", "Turns trajectories into the figures of the membrane paper.",
        ("login02",), ("shared", "test"), days_ago=20,
    ),
    AgentPlan(
        "okafor-lit-miner", "u0470", "cursor", "Collects published binding energies into one table.",
        ("login05",), ("shared",), state="waiting", days_ago=1,
    ),
    AgentPlan(
        "marlowe-finetune", "u0102", "claude-code", "Fine-tunes language models and compares ablations.",
        ("login01", "login02"), ("gpu_h200", "gpu_a100", "test"), "unattended", days_ago=27,
    ),
    AgentPlan(
        "marlowe-ingest", "u0118", "claude-code", "Cleans and packs training text.",
        ("login02",), ("shared",), state="retired", days_ago=29,
    ),
    AgentPlan(
        "lindqvist-unet", "u0377", "cursor", "Trains segmentation networks on microscope images.",
        ("login01",), ("gpu_h200", "gpu_a100"), days_ago=26,
    ),
    AgentPlan(
        "aldana-mesher", "u0231", "claude-code", "Refines meshes and reruns the flow solver until it converges.",
        ("login04", "login05"), ("shared", "bigmem"), "unattended", days_ago=25,
    ),
    AgentPlan(
        "aldana-notebook", "u0238", "claude-code", "Keeps the group's analysis notebooks running.",
        ("login05",), ("shared",), state="held", days_ago=3,
    ),
    AgentPlan(
        "ferrant-pipeline", "u0540", "claude-code", "Repairs and reruns the alignment pipeline when a rule fails.",
        ("login01", "login04"), ("shared", "bigmem"), days_ago=19,
    ),
    AgentPlan(
        "quillon-dataset-builder", "u0611", "codex", "Builds and checks text data sets for the corpora project.",
        ("login03",), ("shared", "test"), days_ago=25,
    ),
    AgentPlan(
        "vesterholt-resume-loop", "u0733", "claude-code", "Relaxes perovskite cells in chained short runs.",
        ("login02", "login03"), ("gpu_h200", "gpu_a100", "test"), "unattended", days_ago=28,
    ),
    AgentPlan(
        "vesterholt-sampler", "u0741", "codex", "Samples phonon modes at random q points.",
        ("login04",), ("shared",), state="suspended", days_ago=21,
    ),
    AgentPlan(
        "brannigan-ci", "u0682", "copilot", "Runs the solver library's tests and benchmarks on every merge.",
        ("login01", "login02"), ("test", "gpu_a100"), days_ago=27,
    ),
)  # fmt: skip


LAB_OF: Final = {login: lab for lab in LABS for login in lab.people}
