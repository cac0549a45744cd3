package redline

import cats.effect.{ExitCode, IO}
import org.http4s.HttpApp
import org.http4s.blaze.server.BlazeServerBuilder
import org.http4s.server.websocket.WebSocketBuilder2

/** Blaze with its defaults, but for how many connections it accepts at once. */
object Blaze {
  def serve(app: WebSocketBuilder2[IO] => HttpApp[IO], arguments: Arguments): IO[ExitCode] =
    BlazeServerBuilder[IO]
      .bindHttp(arguments.port, arguments.host)
      .withMaxConnections(arguments.connections.getOrElse(sys.error("--connections N is missing")))
      .withHttpWebSocketApp(app)
      .withoutBanner
      .resource
      .useForever
      .onError { case reason: java.net.SocketException => IO(Serving.cannotServe(arguments, reason)) }
}
