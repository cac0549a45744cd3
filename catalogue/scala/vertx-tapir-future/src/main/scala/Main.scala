package redline

import ch.qos.logback.classic.Level
import io.vertx.core.Vertx
import io.vertx.ext.web.Router
import sttp.tapir.server.vertx.{VertxFutureServerInterpreter, VertxFutureServerOptions}

import scala.concurrent.Future

/** tapir's endpoints as Vert.x routes whose logic gives Futures. */
object Main {
  def main(words: Array[String]): Unit = {
    val arguments = Arguments.parse(words.toSeq)
    val interpreter = VertxFutureServerInterpreter(options(arguments))
    Verticles.deploy(Verticles.vertx(arguments), arguments)(router(_, interpreter, arguments.routes))
  }

  private def options(arguments: Arguments): VertxFutureServerOptions = {
    val withServerLog = VertxFutureServerOptions.customiseInterceptors
    arguments.serverLog match {
      case None => withServerLog.serverLog(None).options
      case Some(file) =>
        RequestLog.to(file, "tapir-vertx", Level.DEBUG)
        withServerLog.options
    }
  }

  private def router(vertx: Vertx, interpreter: VertxFutureServerInterpreter, routes: Int): Router = {
    val router = Router.router(vertx)
    Endpoints.all[Future](routes).foreach(endpoint => interpreter.route(endpoint)(router))
    router
  }
}
