package redline

import ch.qos.logback.classic.Level
import sttp.tapir.server.ziohttp.{ZioHttpInterpreter, ZioHttpServerOptions}
import zio.Task
import zio.http.{Response, Routes}

/** tapir's endpoints as zio-http's Routes, with tapir's own server log or none. */
object Tapir {
  def routes(arguments: Arguments): Routes[Any, Response] = {
    val options = ZioHttpServerOptions.customiseInterceptors[Any].serverLog(serverLog(arguments)).options
    ZioHttpInterpreter(options).toHttp(Endpoints.all[Task](arguments.routes) ++ WebSockets.all(arguments.pings))
  }

  private def serverLog(arguments: Arguments) = arguments.serverLog.map { file =>
    RequestLog.to(file, "sttp.tapir.server.ziohttp", Level.DEBUG)
    ZioHttpServerOptions.defaultServerLog[Any]
  }
}
