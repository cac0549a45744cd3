package redline

import ch.qos.logback.classic.Level
import org.apache.pekko.http.scaladsl.server.Route
import sttp.tapir.server.interceptor.log.ServerLog
import sttp.tapir.server.pekkohttp.{PekkoHttpServerInterpreter, PekkoHttpServerOptions}

import scala.concurrent.{ExecutionContext, Future}

/** tapir's endpoints as one pekko-http route, with tapir's own server log or none. */
object Tapir {
  def route(routes: Int, serverLog: Option[ServerLog[Future]])(using ExecutionContext): Route = {
    val options = PekkoHttpServerOptions.customiseInterceptors.serverLog(serverLog).options
    PekkoHttpServerInterpreter(options).toRoute(Endpoints.all[Future](routes))
  }

  def serverLog(arguments: Arguments): Option[ServerLog[Future]] = arguments.serverLog.map { file =>
    RequestLog.to(file, "sttp.tapir.server.pekkohttp", Level.DEBUG)
    PekkoHttpServerOptions.defaultSlf4jServerLog
  }
}
