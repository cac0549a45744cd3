package redline

import ch.qos.logback.classic.Level
import org.apache.pekko.event.Logging
import org.apache.pekko.http.scaladsl.model.ws.{Message, TextMessage}
import org.apache.pekko.http.scaladsl.model.{HttpRequest, StatusCodes}
import org.apache.pekko.http.scaladsl.server.{Route, RouteResult}
import org.apache.pekko.http.scaladsl.server.Directives.*
import org.apache.pekko.http.scaladsl.server.directives.LogEntry
import org.apache.pekko.stream.scaladsl.{Flow, Sink, Source}

import java.nio.charset.StandardCharsets.UTF_8
import scala.concurrent.duration.DurationLong

/** pekko-http as its documentation writes it: the routing DSL, concatenated routes, and its logging directive. */
object Vanilla {
  def route(arguments: Arguments): Route = {
    val routes = concat((timestamp +: (0 until arguments.routes).flatMap(numbered) :+ echo :+ pushes) *)
    arguments.serverLog.fold(routes) { file =>
      // The logger of an actor system, which is where the directives log.
      RequestLog.to(file, "org.apache.pekko.actor.ActorSystemImpl", Level.INFO)
      // Sealed inside, so that what no route answers is logged as the 404 or 405 that it becomes.
      logRequestResult(entry)(Route.seal(routes))
    }
  }

  private def numbered(number: Int): Seq[Route] = Seq(getRoute(s"path$number"), bytesRoute(s"bytes$number"), stringRoute(s"string$number"))

  private def getRoute(name: String): Route = path(name) {
    get {
      complete(name)
    }
  }

  private def bytesRoute(name: String): Route = path(name) {
    post {
      entity(as[Array[Byte]]) { body =>
        complete(s"$name ${body.length}")
      }
    }
  }

  private def stringRoute(name: String): Route = path(name) {
    post {
      entity(as[String]) { body =>
        complete(s"$name ${body.getBytes(UTF_8).length}")
      }
    }
  }

  private val timestamp: Route = path("ts") {
    get {
      parameter("unit".withDefault("ms")) { unit =>
        Clock.now(unit).fold(complete(StatusCodes.BadRequest, Clock.unknown(unit)))(complete(_))
      }
    }
  }

  private val echo: Route = path("ws" / "echo") {
    handleWebSocketMessages(Flow[Message])
  }

  private val pushes: Route = path("ws" / "ts") {
    val every = Clock.pushesEveryMillis.millis
    val times = Source.tick(every, every, ()).map(_ => TextMessage(Clock.nanos))
    handleWebSocketMessages(Flow.fromSinkAndSourceCoupled(Sink.ignore, times))
  }

  private def entry(request: HttpRequest)(result: RouteResult): Option[LogEntry] = result match {
    case RouteResult.Complete(response) =>
      Some(LogEntry(s"${request.method.value} ${request.uri.path} ${response.status.intValue}", Logging.InfoLevel))
    case RouteResult.Rejected(_) => None
  }
}
