package redline

import ch.qos.logback.classic.Level
import play.api.routing.Router
import sttp.tapir.server.play.{PlayServerInterpreter, PlayServerOptions}

import scala.concurrent.Future

/** tapir's endpoints as Play's routes, with tapir's own server log or none. */
final class Tapir(val arguments: Arguments) extends Play {
  private val serverLog = arguments.serverLog.map { file =>
    RequestLog.to(file, "sttp.tapir.server.play", Level.DEBUG)
    PlayServerOptions.defaultServerLog
  }

  override lazy val router: Router = {
    val options = PlayServerOptions.customiseInterceptors().serverLog(serverLog).options
    Router.from(PlayServerInterpreter(options).toRoutes(Endpoints.all[Future](arguments.routes)))
  }
}
