"""What one host runs for many: nothing but the own jobs of who asks, by options that are known."""

import pytest

from telemetry.engine.slurm.printing import PassedOn
from telemetry.engine.slurm.shared_calls import SharedCall, read_shared_call


def read(program: str, *arguments: str, login: str = "ann", logins: tuple[str, ...] = ("ann", "ann2")) -> SharedCall:
    return read_shared_call(program, arguments, login=login, logins=logins)


@pytest.mark.parametrize(
    ("given", "command", "jobs"),
    [
        ("squeue --me -l", "squeue --long --user=ann", set()),
        ("squeue -u ann2 -h", "squeue --noheader --user=ann2", set()),
        ("squeue -hj 7,8_1", "squeue --noheader --jobs=7,8_1 --user=ann,ann2", {7, 8}),
        ("squeue -j7 --me", "squeue --jobs=7 --user=ann", {7}),
        ("squeue --me --sort=-p,i -o %i", "squeue --format=%i --sort=-p,i --user=ann", set()),
        ("sacct", "sacct --user=ann", set()),
        ("sacct -XnP -j 7.batch", "sacct --allocations --noheader --parsable2 --jobs=7.batch --user=ann", {7}),
        ("sacct --uid=ann2", "sacct --user=ann2", set()),
    ],
)
def test_a_call_is_held_to_its_user(given: str, command: str, jobs: set[int]) -> None:
    assert read(*given.split()) == SharedCall(tuple(command.split()), frozenset(jobs))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("squeue", "all_users"),
        ("squeue -p shared", "all_users"),
        ("squeue -u bob", "other_user"),
        ("squeue -u ann,bob", "other_user"),
        ("squeue -u ann --me", "other_user"),
        ("squeue --me --json", "option"),
        ("squeue --me --yaml", "option"),
        ("squeue --me -o %999999999i", "format"),
        ("squeue --me -O jobid:.10000", "format"),
        ("sacct -o jobid%99999", "format"),
        ("sacct --json", "all_users"),  # 22.05 tells everybody's, and goes by no user
        ("sacct --json -u ann -S now-1hours", "all_users"),
        ("sacct --yaml -j 7", "option"),
        ("squeue --me -s", "option"),
        ("squeue --me -i 5", "option"),
        ("squeue --me -M all", "option"),
        ("squeue --me -o %all", "format"),
        ("squeue --me --us=bob", "option"),
        ("squeue --me --user=", "option"),
        ("squeue -u ann -u bob", "option"),
        ("squeue --me 7", "option"),
        ("squeue --me -- 7", "option"),
        ("squeue -j", "option"),
        ("squeue -j x", "job_id"),
        ("sacct -a", "option"),
        ("sacct --allusers", "option"),
        ("sacct -L", "option"),
        ("sacct -f /etc/shadow", "option"),
        ("sacct -B -j 7", "option"),
        ("sacct -c", "option"),
        ("sacct -u bob", "other_user"),
        ("sacct -o", "option"),
        ("sinfo", "other_user"),
    ],
)
def test_what_cannot_be_held_to_it_is_refused(given: str, reason: str) -> None:
    with pytest.raises(PassedOn) as passed:
        read(*given.split())
    assert passed.value.reason == reason


def test_who_asks_is_one_of_the_names() -> None:
    with pytest.raises(PassedOn, match="other_user"):
        read("squeue", "--me", login="root")


def test_a_value_is_never_an_option() -> None:
    assert read("squeue", "--me", "-n", "--json").command == ("squeue", "--name=--json", "--user=ann")
    assert read("sacct", "-o", "-a;id").command == ("sacct", "--format=-a;id", "--user=ann")
    with pytest.raises(PassedOn):
        read("squeue", "--me", "-o", "%i" * 1000)


@pytest.mark.parametrize(
    ("printed", "may"),
    [
        (b'{"jobs": [{"user": "ann"}, {"user": "ann"}]}', True),
        (b'{"jobs": []}', True),
        (b'{"jobs": [{"user": "ann"}, {"user": "bob"}]}', False),  # the number was given again, or a filter is not kept
        (b'{"jobs": [{"user": "ann2"}]}', False),  # hers too, and not asked for
        (b'{"jobs": [{}]}', False),
        (b"[" * 100_000, False),
        (b"", False),
    ],
)
def test_json_is_shown_where_it_tells_of_its_user_alone(printed: bytes, may: bool) -> None:
    call = read("sacct", "--json", "-j", "7")
    assert (call.command, call.jobs) == (("sacct", "--json", "--jobs=7", "--user=ann"), {7})
    assert call.may_show(printed) is may
    assert read("sacct", "-j", "7").may_show(printed)
