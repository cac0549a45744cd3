"""Doubts about the client and the machine that both run on. `docs/concepts/findings.md` teaches them in this order."""

from redline.findings.rules.rule import Rule
from redline.model import FindingKind

MACHINE = (
    Rule(
        FindingKind.CLIENT_SATURATED,
        "share of the window for which the engine's workers ran or waited for a core",
        note=None,
        warn=0.90,
        invalid=0.95,
        reason="A client without idle time sets the pace itself. Invalid only where that is certain: a closed load, "
        "cores of its own for each side, and a server with capacity to spare; a note where the server's cores are full "
        "as well. For open loads `send-lateness` judges.",
        advice="Give the engine more cores or workers, or load less, until the server is what limits the rate.",
    ),
    Rule(
        FindingKind.CPU_STEAL,
        "share of the CPU time wanted by this machine that its host gave to others",
        note=0.02,
        warn=0.10,
        invalid=None,
        reason="Stolen time is added to whatever runs, and looks like the server's. Below 2% it is less than the "
        "differences worth acting on; interleaved trials average what is above.",
        advice="Use a machine with dedicated cores, or more trials.",
    ),
    Rule(
        FindingKind.CPU_PRESSURE,
        "share of the window in which some task waited for a core (PSI), where others than server and engine used more "
        "than 10% of the CPU time",
        note=0.20,
        warn=0.40,
        invalid=None,
        reason="A saturated server makes pressure by itself; together with other work it says that they were in each "
        "other's way. Where tasks waited 40% of the time, throughput was seen to halve.",
        advice="Stop other work on this machine, or pin it away from the server's and the engine's cores.",
    ),
    Rule(
        FindingKind.NOISY_NEIGHBOUR,
        "server and engine on cores of their own: share of the window for which the engine's workers wanted a core and "
        "had none, or for which the server did while others were on its cores, whichever is larger",
        note=0.05,
        warn=0.10,
        invalid=None,
        reason="On cores of their own both wait only for what does not belong there. The kernel's housekeeping and the "
        "lab make it 4% at most in quiet runs. From 10% on it takes as much as a host that earns a warning.",
        advice="Find what else ran on these cores (`top`, then `1`), and stop it or pin it elsewhere.",
    ),
    Rule(
        FindingKind.THROTTLED,
        "share of the periods of a CPU quota within the window in which server or engine had used it up",
        note=0.0,
        warn=0.01,
        invalid=None,
        reason="Who has used up a quota stands still until its period ends, for up to 100 ms as a rule, and so do the "
        "requests in it. In 1% of the periods that can be all that is beyond p99. With a quota on the server this may "
        "be what was asked for, so it is no more than a warning.",
        advice="Raise the quota (`cpu.max`, `--cpus` of a container), or read the number as that of the quota.",
    ),
    Rule(
        FindingKind.PERTURBED,
        "whether a probe changed what it measured",
        note=None,
        warn=0.0,
        invalid=None,
        reason="A profiler takes time from what it watches.",
        advice="Take comparisons from a run without profilers.",
    ),
)
