package redline

import cats.effect.{ExitCode, IO}
import org.http4s.HttpApp
import org.http4s.blaze.server.BlazeServerBuilder

/** Blaze with its defaults. */
object Blaze {
  def serve(app: HttpApp[IO], port: Int): IO[ExitCode] =
    BlazeServerBuilder[IO]
      .bindHttp(port, Serving.host)
      .withHttpApp(app)
      .withoutBanner
      .resource
      .useForever
      .onError { case reason: java.net.SocketException => IO(Serving.cannotServe(port, reason)) }
}
