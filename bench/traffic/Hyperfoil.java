import io.hyperfoil.api.config.Benchmark;
import io.hyperfoil.api.config.BenchmarkData;
import io.hyperfoil.core.impl.LocalSimulationRunner;
import io.hyperfoil.core.parser.BenchmarkParser;
import io.hyperfoil.http.statistics.HttpStats;
import java.io.FileInputStream;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** Runs a benchmark of Hyperfoil in this process and prints its counters as a line of JSON: java Hyperfoil FILE. */
public final class Hyperfoil {
  public static void main(String[] args) throws Exception {
    Benchmark benchmark;
    try (var file = new FileInputStream(args[0])) {
      benchmark = BenchmarkParser.instance().buildBenchmark(file, BenchmarkData.EMPTY, Map.of());
    }
    LongAdder answered = new LongAdder(), ok = new LongAdder(), errors = new LongAdder();
    new LocalSimulationRunner(
            benchmark,
            (phase, stepId, metric, snapshot, countDown) -> {
              answered.add(snapshot.responseCount);
              ok.add(HttpStats.get(snapshot).status_2xx);
              errors.add(snapshot.errors());
            },
            null,
            null)
        .run();
    System.out.printf(
        "{\"answered\": %d, \"ok\": %d, \"errors\": %d}%n", answered.sum(), ok.sum(), errors.sum());
    System.exit(0);
  }
}
