package redline

import ch.qos.logback.classic.Level
import org.apache.pekko.http.scaladsl.server.Route
import sttp.tapir.server.pekkohttp.{PekkoHttpServerInterpreter, PekkoHttpServerOptions}

import scala.concurrent.{ExecutionContext, Future}

/** tapir's endpoints as one pekko-http route, with tapir's own server log or none. */
object Tapir {
  def route(arguments: Arguments)(using ExecutionContext): Route = {
    val options = PekkoHttpServerOptions.customiseInterceptors.serverLog(serverLog(arguments)).options
    PekkoHttpServerInterpreter(options).toRoute(Endpoints.all[Future](arguments.routes) ++ WebSockets.all(arguments.pings))
  }

  private def serverLog(arguments: Arguments) = arguments.serverLog.map { file =>
    RequestLog.to(file, "sttp.tapir.server.pekkohttp", Level.DEBUG)
    PekkoHttpServerOptions.defaultSlf4jServerLog
  }
}
