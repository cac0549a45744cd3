import static io.gatling.javaapi.core.CoreDsl.atOnceUsers;
import static io.gatling.javaapi.core.CoreDsl.StringBody;
import static io.gatling.javaapi.core.CoreDsl.exec;
import static io.gatling.javaapi.core.CoreDsl.jsonPath;
import static io.gatling.javaapi.core.CoreDsl.scenario;
import static io.gatling.javaapi.http.HttpDsl.flushCookieJar;
import static io.gatling.javaapi.http.HttpDsl.http;
import static io.gatling.javaapi.http.HttpDsl.status;

import io.gatling.javaapi.core.ChainBuilder;
import io.gatling.javaapi.core.Simulation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Sends the requests of a file in turn, by users that wait for answers. Properties: base (a URL), users, millis, and
 * requests (a file with "METHOD PATH BODY" on each line, the body may be missing). With journey=true the answer of the
 * first has a token that the others send.
 */
public final class Traffic extends Simulation {
  {
    boolean journey = Boolean.getBoolean("journey");
    List<ChainBuilder> steps = new ArrayList<>();
    if (journey) {
      steps.add(exec(flushCookieJar())); // a new visitor
    }
    for (String line : lines()) {
      String[] parts = line.split(" ", 3);
      var request = http(parts[0] + " " + parts[1]).httpRequest(parts[0], parts[1]).check(status().is(200));
      if (parts.length == 3) {
        request = request.body(StringBody(parts[2]));
      }
      if (journey) {
        boolean first = steps.size() == 1;
        request = first ? request.check(jsonPath("$.token").saveAs("token")) : request.header("X-Token", "#{token}");
      }
      steps.add(exec(request));
    }
    var lasts = Duration.ofMillis(Long.getLong("millis"));
    // Each user has connections of its own, as elsewhere in this bench. The check of the clock after each request lets
    // a load end on time.
    var users = scenario("traffic").during(lasts, "n", true).on(steps.stream().reduce((a, b) -> a.exec(b)).get());
    setUp(users.injectOpen(atOnceUsers(Integer.getInteger("users"))))
        .protocols(http.baseUrl(System.getProperty("base")).disableWarmUp().disableCaching());
  }

  private static List<String> lines() {
    try {
      return Files.readAllLines(Path.of(System.getProperty("requests")));
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }
}
