package redline

import cats.effect.IO
import ch.qos.logback.classic.Level
import org.http4s.HttpApp
import sttp.tapir.server.http4s.{Http4sServerInterpreter, Http4sServerOptions}

/** tapir's endpoints as http4s routes, with tapir's own server log or none. */
object Tapir {
  def app(arguments: Arguments): HttpApp[IO] =
    Http4sServerInterpreter[IO](options(arguments)).toRoutes(Endpoints.all[IO](arguments.routes)).orNotFound

  private def options(arguments: Arguments): Http4sServerOptions[IO] = {
    val withServerLog = Http4sServerOptions.customiseInterceptors[IO]
    arguments.serverLog match {
      case None => withServerLog.serverLog(None).options
      case Some(file) =>
        RequestLog.to(file, "sttp.tapir.server.http4s", Level.DEBUG)
        withServerLog.options
    }
  }
}
