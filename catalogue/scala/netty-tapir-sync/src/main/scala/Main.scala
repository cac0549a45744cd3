package redline

import ch.qos.logback.classic.Level
import sttp.shared.Identity
import sttp.tapir.server.netty.sync.{NettySyncServer, NettySyncServerOptions}

/** tapir's server on Netty whose logic runs in virtual threads, in direct style. */
object Main {
  def main(words: Array[String]): Unit = {
    val arguments = Arguments.parse(words.toSeq)
    val server = NettySyncServer(options(arguments))
      .host(arguments.host)
      .port(arguments.port)
      .addEndpoints(Endpoints.all[Identity](arguments.routes))
    try server.startAndWait()
    catch { case reason: java.io.IOException => Serving.cannotServe(arguments, reason) }
  }

  private def options(arguments: Arguments): NettySyncServerOptions = {
    val withServerLog = NettySyncServerOptions.customiseInterceptors
    arguments.serverLog match {
      case None => withServerLog.serverLog(None).options
      case Some(file) =>
        RequestLog.to(file, "sttp.tapir.server.netty.sync", Level.DEBUG)
        withServerLog.options
    }
  }
}
