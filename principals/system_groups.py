"""The groups of a login name as this host knows them: files, LDAP or SSSD, whatever its name service asks."""

import grp
import os
import pwd


def groups_of(login: str) -> frozenset[str]:
    """Return the names of somebody's groups; none for a name that this host does not know."""
    try:
        primary = pwd.getpwnam(login).pw_gid
    except KeyError:
        return frozenset()
    names = set()
    for gid in os.getgrouplist(login, primary):
        try:
            names.add(grp.getgrgid(gid).gr_name)
        except KeyError:  # a number without a name gives no role
            continue
    return frozenset(names)
