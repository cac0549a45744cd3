"""What the warden is to do."""

import json


class Order:
    """One line of JSON; sizes in bytes. Raises KeyError for a key that is missing."""

    def __init__(self, line: bytes) -> None:
        order = json.loads(line)
        self.command: list[str] = order["command"]
        self.folder: str = order["folder"]
        self.cpus: list[int] = order["cpus"]
        self.grace_ns: int = order["grace_ns"]
        self.cgroup_parent: str = order["cgroup_parent"]
        self.log_head: int = order["log_head"]
        self.log_tail: int = order["log_tail"]
