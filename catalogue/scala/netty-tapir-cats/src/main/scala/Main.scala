package redline

import cats.effect.{ExitCode, IO, IOApp, Resource}
import cats.effect.std.Dispatcher
import ch.qos.logback.classic.Level
import sttp.tapir.server.netty.cats.{NettyCatsServer, NettyCatsServerOptions}

/** tapir's server on Netty whose logic runs in cats-effect's IO. */
object Main extends IOApp {
  def run(words: List[String]): IO[ExitCode] = {
    val arguments = Arguments.parse(words)
    val serving = for {
      dispatcher <- Dispatcher.parallel[IO]
      server = NettyCatsServer[IO](options(arguments, dispatcher))
        .host(arguments.host)
        .port(arguments.port)
        .addEndpoints(Endpoints.all[IO](arguments.routes))
        .addEndpoints(WebSockets.all(arguments.pings, pongs = true))
      _ <- Resource.eval(server.start()) // its stop() would wait longer for idle connections than the lab waits for a server
    } yield ()
    serving.useForever.onError { case reason: java.io.IOException => IO(Serving.cannotServe(arguments, reason)) }
  }

  private def options(arguments: Arguments, dispatcher: Dispatcher[IO]): NettyCatsServerOptions[IO] = {
    val withServerLog = NettyCatsServerOptions.customiseInterceptors[IO](dispatcher)
    arguments.serverLog match {
      case None => withServerLog.serverLog(None).options
      case Some(file) =>
        RequestLog.to(file, "sttp.tapir.server.netty.cats", Level.DEBUG)
        withServerLog.options
    }
  }
}
