"""Labs from CSV: our columns and a ColdFront export's; dry, line by line, and twice the same."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from portal.core.models import AuditEvent
from principals.models import ClusterUser, Lab, LabMembership, SlurmAccount, User
from tests import factories
from tests.conftest import Cast

OURS = """lab,title,username,role,account
vega,Vega Lab,ines,pi,vega_lab
vega,Vega Lab,tom,member,vega_lab
"""
COLDFRONT = """Project Title,PI Username,Username,Role,Status,slurm_account_name
"Vega, Stars & Dust",ines,ines,Manager,Active,vega_lab
"Vega, Stars & Dust",ines,tom,User,Active,vega_lab
"Vega, Stars & Dust",ines,old,User,Removed,vega_lab
"""


def _import(tmp_path: Path, text: str, *more: str) -> list[str]:
    file, said = tmp_path / "labs.csv", StringIO()
    file.write_text(text, encoding="utf-8")
    call_command("import_labs", str(file), *more, stdout=said)
    return said.getvalue().splitlines()


def _places() -> dict[tuple[str, str], str]:
    return {(lab, user): role for lab, user, role in
            LabMembership.objects.values_list("lab__name", "user__username", "role")}  # fmt: skip


def test_our_columns(db: None, tmp_path: Path) -> None:
    said = _import(tmp_path, OURS)
    assert said[0] == "line 2: changed: vega: new lab, titled Vega Lab, new person ines, ines is its pi"
    assert said[-1] == "2 changed, 0 unchanged, 0 refused. Nobody was taken away."
    assert _places() == {("vega", "ines"): "pi", ("vega", "tom"): "member"}


def test_a_coldfront_export(db: None, tmp_path: Path) -> None:
    factories.make_cluster("aster")
    said = _import(tmp_path, COLDFRONT, "--cluster", "aster")
    assert _places() == {("vega_lab", "ines"): "pi", ("vega_lab", "tom"): "member"}
    assert Lab.objects.get().title == "Vega, Stars & Dust"
    assert SlurmAccount.objects.get().lab == Lab.objects.get()
    assert set(ClusterUser.objects.values_list("cluster__name", "login", "user__username")) == {
        ("aster", "ines", "ines"), ("aster", "tom", "tom"),
    }  # fmt: skip
    assert said[2] == "line 4: refused: Its status is Removed, not active."


def test_twice_is_once(db: None, tmp_path: Path) -> None:
    _import(tmp_path, OURS)
    told = AuditEvent.objects.count()
    assert _import(tmp_path, OURS)[-1].startswith("0 changed, 2 unchanged")
    assert AuditEvent.objects.count() == told


def test_a_dry_run_keeps_nothing_and_says_the_same(db: None, tmp_path: Path) -> None:
    dry = _import(tmp_path, OURS, "--dry-run")
    assert dry[-1].endswith("Nothing was kept: this was a dry run.")
    assert not Lab.objects.exists() and not User.objects.exists() and not AuditEvent.objects.exists()
    assert _import(tmp_path, OURS)[:-1] == dry[:-1]


def test_a_role_that_changed_is_changed_and_nobody_is_taken_away(cast: Cast, tmp_path: Path) -> None:
    said = _import(tmp_path, "lab,username,role\nokafor,colleague,manager\n")
    assert said[0] == "line 2: changed: okafor: colleague is its manager, was member"
    assert LabMembership.objects.filter(lab=cast.lab).count() == 3


def test_an_account_of_another_lab_stays(cast: Cast, tmp_path: Path) -> None:
    text = "lab,username,account\nvega,ines,okafor_lab\n"
    assert "account okafor_lab stays with okafor" in _import(tmp_path, text, "--cluster", "aster")[0]
    assert SlurmAccount.objects.get(name="okafor_lab").lab == cast.lab


def test_a_login_name_of_somebody_else_stays_theirs(cast: Cast, tmp_path: Path) -> None:
    ClusterUser.objects.create(cluster=cast.cluster, login="tom", user=cast.colleague)
    said = _import(tmp_path, OURS, "--cluster", cast.cluster.name)
    assert f"tom on {cast.cluster.name} stays colleague’s" in said[1]
    assert ClusterUser.objects.get(login="tom").user == cast.colleague


def test_an_account_that_slurm_told_of_first_comes_to_its_lab(db: None, tmp_path: Path) -> None:
    factories.make_account(factories.make_cluster("aster"), factories.make_lab("vega"))
    lone = SlurmAccount.objects.get()
    Lab.objects.filter(pk=lone.lab_id).update(name=lone.name)
    _import(tmp_path, OURS, "--cluster", "aster")
    lone.refresh_from_db()
    assert lone.lab.name == "vega"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (",ines,pi", "No lab is named."),
        ("vega,,pi", "Nobody is named."),
        ("vega,in es,pi", "That is no login name."),
        ("vega,ines,king", "No such role: king. Roles are pi, manager and member."),
        ("vega,ines,\x1b[2Jking", "It holds characters that cannot be shown."),
        ("ve\0ga,ines,pi", "It holds characters that cannot be shown."),
    ],
    ids=["lab", "nobody", "login", "role", "escape", "nul"],
)
def test_a_bad_line_is_refused_and_the_others_are_not(db: None, tmp_path: Path, line: str, why: str) -> None:
    said = _import(tmp_path, f"lab,username,role\n{line}\nvega,tom,member\n")
    assert said[0] == f"line 2: refused: {why}"
    assert _places() == {("vega", "tom"): "member"}


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "lab\nvega\n"], ids=["empty", "strange", "no-people"])
def test_a_file_that_names_no_columns_is_refused(db: None, tmp_path: Path, text: str) -> None:
    with pytest.raises(CommandError, match="The first line names the columns"):
        _import(tmp_path, text)


def test_a_file_that_is_not_there_or_no_text(db: None, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"lab,username\n\xff\xfe,\n")
    for file in ("none", "x"):
        with pytest.raises(CommandError, match="cannot be read"):
            call_command("import_labs", str(tmp_path / file), stdout=StringIO())


@pytest.mark.parametrize(
    ("first", "second"),
    [("Müller", "Muller"), ("Lab A!", "lab-a"), ("x" * 64, "x" * 80)],
    ids=["accent", "sign", "length"],
)
def test_two_labs_are_never_made_one(db: None, tmp_path: Path, first: str, second: str) -> None:
    """Else the PI of the second would manage the first."""
    said = _import(tmp_path, f"title,pi\n{first},ines\n{second},eve\n{first},ines\n")
    assert "line 3: refused: Another lab of this file" in said[1] and said[2].startswith("line 4: unchanged")
    assert [user for _, user in _places()] == ["ines"]


def test_a_cell_without_end_is_no_csv(db: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="That is no CSV"):
        _import(tmp_path, f'lab,pi\nvega,"{"x" * 200_000}"\n')


def test_an_address_that_no_row_keeps_is_none(db: None, tmp_path: Path) -> None:
    long = "@" + ".".join(["d" * 60] * 4) + ".example"
    _import(tmp_path, f"lab,username,email\nvega,ines,{'a' * 60}{long}\n")
    assert User.objects.get(username="ines").email == ""
