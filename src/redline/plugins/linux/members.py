"""The processes of a server that was started here."""

import os

from redline.plugins.linux import cgroup, procfs


def started_by(root: int) -> tuple[int, ...]:
    """The process and its descendants, also those whose parents have ended; empty when none is left.

    Uses its control group, if it has one, and parents: the warden inherits orphans, so what is below
    the warden is the server.
    """
    group = cgroup.own_group_of(root)
    return tuple(dict.fromkeys((*_below(root), *(cgroup.processes(group) if group else ()))))


def _below(root: int) -> tuple[int, ...]:
    stat = procfs.read_stat(root)
    if stat is None:
        return ()
    warden = procfs.read_stat(stat.parent)
    if warden is None or warden.parent != os.getpid():
        return procfs.tree(root)
    return tuple(pid for pid in procfs.tree(stat.parent) if pid != stat.parent)
