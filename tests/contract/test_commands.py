"""Every management command of ours has tests that name it, explains itself, and refuses nonsense in a sentence."""

from io import StringIO
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command, get_commands, load_command_class

ROOT = Path(__file__).resolve().parent.parent
OUR_APPS = {config.name for config in apps.get_app_configs() if Path(config.path).is_relative_to(ROOT.parent)
            and ".venv" not in Path(config.path).parts}  # fmt: skip
# Command → the test file that is about it. A new command comes with its row.
TESTED_BY = {
    "baseline_study": "telemetry/test_baseline_study.py",
    "add_person": "principals/test_directory_commands.py",
    "issue_service_token": "principals/test_directory_commands.py",
    "export_policy": "policies/test_export_policy.py",
    "plan_qos": "policies/test_plan_qos.py",
    "publish_aup": "principals/test_directory_commands.py",
    "import_gateway_log": "telemetry/test_import_gateway_log.py",
    "import_gpu_utilisation": "telemetry/test_import_gpu_use.py",
    "import_labs": "principals/test_import_labs.py",
    "ingest_jobs": "telemetry/test_ingest_jobs.py",
    "report": "reports/test_contents.py",
    "run": "run/test_run.py",
    "setup": "portal/test_setup.py",
    "slurm_reader": "telemetry/test_read_slurm.py",
    "subject": "portal/test_subject.py",
    "simulate": "portal/test_simulate.py",
    "usage": "telemetry/test_usage.py",
    "verify_audit": "core/test_seal.py",
}


def our_commands() -> dict[str, str]:
    return {name: app for name, app in get_commands().items() if app in OUR_APPS}


def test_every_command_has_a_test_file():
    assert set(our_commands()) == set(TESTED_BY)


@pytest.mark.parametrize(("command", "file"), TESTED_BY.items())
def test_the_file_calls_the_command(command, file):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f'"{command}"' in text
    assert "def test_" in text


@pytest.mark.parametrize(("command", "app"), our_commands().items())
def test_a_command_says_what_it_is_for(command, app):
    loaded = load_command_class(app, command)
    assert loaded.help.endswith(".")
    parser = loaded.create_parser("manage.py", command)
    own = [action for action in parser._actions if action.dest in _own_options(loaded)]
    assert [action.dest for action in own if not action.help] == []


def _own_options(command) -> set[str]:
    class Bare(type(command).__mro__[1]):
        def handle(self, *args, **options):
            return None

    bare = {action.dest for action in Bare().create_parser("manage.py", "bare")._actions}
    return {action.dest for action in command.create_parser("manage.py", "x")._actions} - bare


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["report", "--cluster", "nowhere", "--month", "2026-07"], "nowhere"),
        (["report", "--cluster", "nowhere", "--month", "July"], "nowhere"),
        (["usage", "--cluster", "nowhere"], "nowhere"),
        (["ingest_jobs", "/no/such/file", "--cluster", "aster"], "/no/such/file"),
        (["import_gpu_utilisation", "/no/such/file", "--cluster", "aster", "--format", "dcgm"], "/no/such/file"),
        (["subject", "erase", "nowhere"], "nowhere"),
        (["simulate", "--jobs", "3"], "500"),
        (["simulate", "--now", "yesterday"], "yesterday"),
    ],
)
@pytest.mark.django_db
def test_nonsense_is_refused_in_one_sentence(line, said):
    with pytest.raises(CommandError) as refused:
        call_command(*line, stdout=StringIO(), stderr=StringIO())
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_registry_names_real_files():
    assert [file for file in TESTED_BY.values() if not (ROOT / file).exists()] == []
