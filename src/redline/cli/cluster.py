"""What `--on ADDRESS` means: the hosts of a cluster, and what a run or a search is made with there."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from redline.cli import places
from redline.cli.session_view import bench_for
from redline.errors import UsageError
from redline.model import Manifest, Suite
from redline.plugins.hosts.remote import Pair
from redline.running.assembly import Workbench, on_hosts, workbench
from redline.running.executors import check_for_hosts
from redline.suite.fitting import Hosts, fitted


@dataclass(frozen=True)
class Cluster:
    """The cluster at an address, connected until `stack` ends; without an address, this machine."""

    address: str | None
    stack: ExitStack

    def bench(self, file: Path, suite: Suite) -> Workbench:
        """What a new session of a suite's file is made with. Raises UsageError, DriveError and HostLostError."""
        pairs, catalogue, cache = self._pairs(suite), places.catalogue(file), places.cache(file)
        return on_hosts(pairs, catalogue, cache) if pairs else workbench(catalogue, cache)

    def prepare(self, file: Path, suite: Suite, console: Console) -> tuple[Workbench, Suite]:
        """What a new session is made with, and its suite as the hosts can hold it. Raises as `bench`."""
        bench = self.bench(file, suite)
        pairs = [
            Hosts(pair.pair.server.report.environment, tuple(host.report.environment for host in pair.pair.loads))
            for pair in bench.pairs
        ]
        suite, reasons = fitted(suite, pairs or [Hosts(bench.environment)])
        for reason in reasons:
            console.print(reason, style="yellow", highlight=False, markup=False)
        return bench, suite

    def bench_for(self, manifest: Manifest) -> Workbench:
        """What a stored session is resumed with. Raises as `bench`."""
        suite, file = manifest.plan.suite, Path(manifest.suite_file)
        if self.address and not manifest.suite_file:
            raise UsageError("what runs behind a URL was searched from here", hint="resume it without --on")
        return self.bench(file, suite) if self.address or suite.load_hosts > 1 else bench_for(manifest)

    def _pairs(self, suite: Suite) -> tuple[Pair, ...]:
        """Pairs of hosts; none to run it on this one."""
        if self.address is None:
            if suite.load_hosts > 1:
                raise UsageError(
                    f"{suite.name} is for {suite.load_hosts} load hosts",
                    hint="name a cluster that has them: --on ADDRESS",
                )
            return ()
        check_for_hosts(suite)
        from redline.plugins.hosts.ray_cluster import connected  # noqa: PLC0415 - only where there is a cluster

        proxies = any(variant.hops for variant in suite.variants)
        return self.stack.enter_context(connected(self.address, suite.load_hosts, proxies=proxies))
