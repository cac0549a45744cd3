package redline

import cats.effect.{ExitCode, IO, IOApp, Resource}
import cats.effect.std.Dispatcher
import ch.qos.logback.classic.Level
import io.vertx.core.Vertx
import io.vertx.ext.web.Router
import sttp.tapir.server.vertx.cats.{VertxCatsServerInterpreter, VertxCatsServerOptions}

/** tapir's endpoints as Vert.x routes whose logic runs in cats-effect's IO. */
object Main extends IOApp {
  def run(words: List[String]): IO[ExitCode] = {
    val arguments = Arguments.parse(words)
    val serving = for {
      dispatcher <- Dispatcher.parallel[IO]
      vertx <- Resource.make(IO(Verticles.vertx(arguments)))(vertx => IO(vertx.close()).void)
      interpreter = VertxCatsServerInterpreter[IO](options(arguments, dispatcher))
      _ <- Resource.eval(IO(Verticles.deploy(vertx, arguments)(router(_, interpreter, arguments.routes))))
    } yield ()
    serving.useForever
  }

  private def options(arguments: Arguments, dispatcher: Dispatcher[IO]): VertxCatsServerOptions[IO] = {
    val withServerLog = VertxCatsServerOptions.customiseInterceptors[IO](dispatcher)
    arguments.serverLog match {
      case None => withServerLog.serverLog(None).options
      case Some(file) =>
        RequestLog.to(file, "tapir-vertx", Level.DEBUG)
        withServerLog.options
    }
  }

  private def router(vertx: Vertx, interpreter: VertxCatsServerInterpreter[IO], routes: Int): Router = {
    val router = Router.router(vertx)
    Endpoints.all[IO](routes).foreach(endpoint => interpreter.route(endpoint)(router))
    router
  }
}
