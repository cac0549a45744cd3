package redline

import ch.qos.logback.classic.Level
import sttp.tapir.server.netty.{NettyFutureServer, NettyFutureServerOptions}

import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.Future
import scala.util.{Failure, Success}

/** tapir's server on Netty whose logic gives Futures. */
object Main {
  def main(words: Array[String]): Unit = {
    val arguments = Arguments.parse(words.toSeq)
    NettyFutureServer(options(arguments))
      .host(arguments.host)
      .port(arguments.port)
      .addEndpoints(Endpoints.all[Future](arguments.routes))
      .start()
      .onComplete {
        case Success(_) => ()
        case Failure(reason) => Serving.cannotServe(arguments, reason)
      }
  }

  private def options(arguments: Arguments): NettyFutureServerOptions = {
    val withServerLog = NettyFutureServerOptions.customiseInterceptors
    arguments.serverLog match {
      case None => withServerLog.serverLog(None).options
      case Some(file) =>
        // The options' logger writes the requests; that of the package would bring what its channels say at DEBUG.
        RequestLog.to(file, NettyFutureServerOptions.getClass.getName, Level.DEBUG)
        withServerLog.options
    }
  }
}
