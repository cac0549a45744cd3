"""Files for the tools of HdrHistogram, read and written again by the library that defines them: its Java version."""

import shutil
import subprocess
from pathlib import Path

import pytest

from redline.analysis.distributions import distributions
from redline.extras.exports.hdr_files import interval_log, percentile_distribution
from tests.e2e.conftest import CHECKOUT
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_run

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SOURCE = """\
import java.io.*;
import java.util.*;
import org.HdrHistogram.*;

public class Read {
  public static void main(String[] args) throws Exception {
    HistogramLogReader reader = new HistogramLogReader(args[0]);
    Map<String, Histogram> sums = new TreeMap<>();
    while (reader.hasNext()) {
      Histogram part = (Histogram) reader.nextIntervalHistogram();
      if (part == null) continue;
      Histogram sum = sums.get(part.getTag());
      if (sum == null) sums.put(part.getTag(), part);
      else sum.add(part);
    }
    for (Map.Entry<String, Histogram> entry : sums.entrySet()) {
      System.out.println(entry.getKey() + " " + entry.getValue().getStartTimeStamp());
      entry.getValue().outputPercentileDistribution(System.out, 1e6);
      System.out.println("--");
    }
  }
}
"""


@pytest.fixture(scope="module")
def jar() -> Path:
    """The library, where a build of the catalogue has brought it here."""
    places = [Path.home() / ".m2" / "repository" / "org" / "hdrhistogram", CHECKOUT / "catalogue" / "java" / "out"]
    jars = [jar for place in places for jar in sorted(place.rglob("HdrHistogram-2.*.jar"))]
    if not jars or shutil.which("java") is None:
        pytest.skip("needs java and HdrHistogram.jar, which the build of java.light-4j-petstore gets")
    return jars[-1]


def test_the_java_library_reads_the_log_and_prints_the_same_distributions(jar: Path, tmp_path: Path) -> None:
    run = simulated_run({"rust.hyper": GOOD}, trials=2)
    parts = list(distributions(run))
    (tmp_path / "run.hlog").write_bytes(b"".join(interval_log(parts, "a run")))
    (tmp_path / "Read.java").write_text(SOURCE)
    command = ["java", "-cp", str(jar), str(tmp_path / "Read.java"), str(tmp_path / "run.hlog")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    printed = dict(block.lstrip("\n").split("\n", 1) for block in done.stdout.split("--\n") if block.strip())
    expected = {
        f"{part.name} {part.spans[0].start_unix_ns // 1_000_000}": percentile_distribution(part.times).decode()
        for part in parts
    }
    assert printed == expected
