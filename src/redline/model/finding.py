"""A reason to doubt a recording."""

from enum import StrEnum

from redline.model.base import Frozen


class Grade(StrEnum):
    """The severity of a finding. An `invalid` cell shows its finding in place of its number."""

    NOTE = "note"
    WARN = "warn"
    INVALID = "invalid"

    @property
    def weight(self) -> int:
        """0 for a note, 1 for a warning, 2 for invalid."""
        return list(Grade).index(self)


class FindingKind(StrEnum):
    """The kind of a finding. `redline.findings` has their rules."""

    RATE_MISSED = "rate-missed"
    BACKLOG = "backlog"
    CLIENT_SATURATED = "client-saturated"
    SEND_LATENESS = "send-lateness"
    CLIENT_QUEUEING = "client-queueing"
    ARRIVALS = "arrivals"
    BUNCHED_SENDS = "bunched-sends"
    ERRORS = "errors"
    EXHAUSTED = "exhausted"
    WRONG_ANSWERS = "wrong-answers"
    SURPLUS_BYTES = "surplus-bytes"
    RECONNECTING = "reconnecting"
    SHRINKING_ANSWERS = "shrinking-answers"
    UNSTEADY = "unsteady"
    STEADINESS_UNKNOWN = "steadiness-unknown"
    NEVER_STEADY = "never-steady"
    SLOWING_DOWN = "slowing-down"
    STILL_COMPILING = "still-compiling"
    NOT_WARMED_UP = "not-warmed-up"
    CARRIED_OVER = "carried-over"
    LITTLES_LAW = "littles-law"
    SERVER_DIED = "server-died"
    TRIAL_FAILED = "trial-failed"
    NOTHING_DUE = "nothing-due"
    SERVER_RESTARTED = "server-restarted"
    UPSTREAM_PROTOCOL = "upstream-protocol"
    UPSTREAM_CERTIFICATE = "upstream-certificate"
    LOCK_LIMITED = "lock-limited"
    DEBUG_LOGGING = "debug-logging"
    HEAP_PRESSURE = "heap-pressure"
    ALLOCATION_STALL = "allocation-stall"
    LEAK_SUSPECTED = "leak-suspected"
    PAUSES_IN_TAIL = "pauses-in-tail"
    COLLECTOR_LOG = "collector-log"
    RUNTIME_DIFFERS = "runtime-differs"
    SERVER_LIMITED = "server-limited"
    NEAR_CEILING = "near-ceiling"
    RUN_DRIFT = "run-drift"
    AUTOCORRELATION = "autocorrelation"
    BIMODAL = "bimodal"
    HOST_MODE = "host-mode"
    BUILDS_DIFFER = "builds-differ"
    BUILDS_ALIKE = "builds-alike"
    ENGINE_PAUSED = "engine-paused"
    CPU_STEAL = "cpu-steal"
    CPU_PRESSURE = "cpu-pressure"
    TOO_FEW_TRIALS = "too-few-trials"
    TOO_FEW_SAMPLES = "too-few-samples"
    RESOLUTION = "resolution"
    CUT_SHORT = "cut-short"
    PERTURBED = "perturbed"
    TLS_INSECURE = "tls-insecure"
    RETRANSMITS = "retransmits"
    LISTEN_OVERFLOW = "listen-overflow"
    PORT_PRESSURE = "port-pressure"
    NETWORK_LIMITED = "network-limited"
    CLOCK_BOUND = "clock-bound"
    LOAD_HOSTS_DIFFER = "load-hosts-differ"
    CLOCK_STEPPED = "clock-stepped"
    PAIRS_DIFFER = "pairs-differ"
    THROTTLED = "throttled"
    NOISY_NEIGHBOUR = "noisy-neighbour"
    CPU_SAMPLED = "cpu-sampled"
    CPU_UNKNOWN = "cpu-unknown"
    FEW_STARTS = "few-starts"
    FAILED_STARTS = "failed-starts"
    CONTROL = "control"
    COLD = "cold"
    DISAGREEMENT = "disagreement"
    ANSWER_SIZES = "answer-sizes"
    CPU_BEHIND = "cpu-behind"
    IDLE_WORK = "idle-work"
    CLIENT_LIMITED = "client-limited"
    RARE_COSTS = "rare-costs"
    PARALLEL = "parallel"


class Finding(Frozen):
    """A reason to doubt a cell, or one of its trials if `position` is given."""

    kind: FindingKind
    grade: Grade
    message: str
    advice: str
    cell_id: str
    position: int | None = None

    def about(self, cell_id: str, position: int | None) -> "Finding":
        """The same finding about another cell, and one of its trials or probes if `position` is given."""
        return self.model_copy(update={"cell_id": cell_id, "position": position})

    def said(self, grade: Grade, message: str) -> "Finding":
        """The same finding with another grade and message, such as for several trials at once."""
        return self.model_copy(update={"grade": grade, "message": message})
