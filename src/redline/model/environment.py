"""The machine and the software of a run."""

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default


class Environment(Frozen):
    """Properties that may affect the numbers. An empty text or None means that a property is not known."""

    redline: str = Field(description="version of the lab")
    engine: str = Field(description="version of the engine")
    engine_sha256: str = Field(default="", description="hex SHA-256 of the engine's binary; empty if not known")
    commit: str = Field(default="", description="git commit of the lab's own checkout, `+dirty` if it has changes")
    python: str
    os: str
    kernel: str
    hostname: str
    cpu_model: str
    cores: int = Field(description="cores that this process may use")
    cores_online: int
    memory_bytes: int
    virtual: str = Field(default="", description="hypervisor, if the machine reports that it is virtual")
    governor: str = ""
    turbo: bool | None = None
    smt: bool | None = None
    frequency_mhz: tuple[int, int] | None = omitted_if_default(None, "lowest and highest that the governor may choose")
    numa_nodes: int | None = omitted_if_default(None, "groups of cores with memory of their own")
    huge_pages: str = omitted_if_default("", "transparent huge pages: always, madvise or never")
    aslr: bool | None = omitted_if_default(None, "whether the kernel places memory at random addresses")
    mitigations: str = omitted_if_default("", "processor faults that the kernel works around, or none")
    clock_source: str = ""
    congestion_control: str = ""
    open_files_soft: int
    open_files_hard: int
    port_range: tuple[int, int] | None = None
    tcp_tw_reuse: int | None = None
    somaxconn: int | None = None
    cgroup: str = Field(default="", description="v1, v2, hybrid or empty")
    cgroup_cpu_limit: float | None = Field(default=None, description="cores that the cgroup allows")
    cgroup_memory_limit_bytes: int | None = None
    load_average_1m: float = 0.0
    steal_share: float | None = Field(default=None, description="share of CPU time stolen, sampled briefly")
    busy_share: float | None = Field(default=None, description="share of CPU time of other processes, sampled briefly")
    server_cpus: tuple[int, ...] = ()
    engine_cpus: tuple[int, ...] = ()
