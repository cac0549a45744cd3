package redline

import cats.effect.{ExitCode, IO}
import com.comcast.ip4s.{Host, Port}
import org.http4s.HttpApp
import org.http4s.ember.server.EmberServerBuilder

import scala.concurrent.duration.DurationInt

/** Ember with its defaults, but for how long it waits for its last requests when it is stopped: 30 s by default. */
object Ember {
  def serve(app: HttpApp[IO], arguments: Arguments): IO[ExitCode] =
    EmberServerBuilder
      .default[IO]
      .withHost(Host.fromString(arguments.host).get)
      .withPort(Port.fromInt(arguments.port).get)
      .withHttpApp(app)
      .withShutdownTimeout(1.second)
      .build
      .useForever
      .onError { case reason: java.net.SocketException => IO(Serving.cannotServe(arguments, reason)) }
}
