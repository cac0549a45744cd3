package redline

import cats.effect.{ExitCode, IO}
import com.comcast.ip4s.{Host, Port}
import org.http4s.HttpApp
import org.http4s.ember.server.EmberServerBuilder
import org.http4s.server.websocket.WebSocketBuilder2

import scala.concurrent.duration.DurationInt

/** Ember with its defaults, but for how long it waits for its last requests when it is stopped: 30 s by default. */
object Ember {
  def serve(app: WebSocketBuilder2[IO] => HttpApp[IO], arguments: Arguments): IO[ExitCode] =
    EmberServerBuilder
      .default[IO]
      .withHost(Host.fromString(arguments.host).get)
      .withPort(Port.fromInt(arguments.port).get)
      .withHttpWebSocketApp(app)
      .withShutdownTimeout(1.second)
      .build
      .useForever
      .onError { case reason: java.net.SocketException => IO(Serving.cannotServe(arguments, reason)) }
}
