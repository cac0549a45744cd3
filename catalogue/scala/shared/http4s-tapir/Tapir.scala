package redline

import cats.effect.IO
import cats.syntax.all.*
import ch.qos.logback.classic.Level
import org.http4s.HttpApp
import org.http4s.server.websocket.WebSocketBuilder2
import sttp.tapir.server.http4s.{Http4sServerInterpreter, Http4sServerOptions}

/** tapir's endpoints as http4s routes, with tapir's own server log or none. */
object Tapir {
  def app(arguments: Arguments): WebSocketBuilder2[IO] => HttpApp[IO] = {
    val interpreter = Http4sServerInterpreter[IO](options(arguments))
    // Blaze has a builder for each connection: the routes that need none are made once.
    val routes = interpreter.toRoutes(Endpoints.all[IO](arguments.routes))
    val webSockets = interpreter.toWebSocketRoutes(WebSockets.all(arguments.pings, pongs = false))
    builder => (routes <+> webSockets(builder)).orNotFound
  }

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
