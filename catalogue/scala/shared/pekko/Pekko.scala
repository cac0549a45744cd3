package redline

import org.apache.pekko.actor.typed.ActorSystem
import org.apache.pekko.actor.typed.scaladsl.Behaviors
import org.apache.pekko.http.scaladsl.Http
import org.apache.pekko.http.scaladsl.server.Route
import org.slf4j.LoggerFactory

/** pekko-http with its defaults. SIGTERM ends the system, and with it the server: pekko's coordinated shutdown hears of it. */
object Pekko {
  def serve(arguments: Arguments)(route: ActorSystem[?] => Route): Unit = {
    // SLF4J is set up here, or the system would do it on its own threads while the routes do it on this one.
    LoggerFactory.getILoggerFactory
    given system: ActorSystem[Nothing] = ActorSystem(Behaviors.empty, "redline")
    Http()
      .newServerAt(arguments.host, arguments.port)
      .bind(route(system))
      .failed
      .foreach(reason => Serving.cannotServe(arguments, reason))(using system.executionContext)
  }
}
