package redline

import cats.effect.IO
import cats.syntax.all.*
import ch.qos.logback.classic.Level
import fs2.Stream
import org.http4s.{HttpApp, HttpRoutes}
import org.http4s.dsl.io.*
import org.http4s.headers.Allow
import org.http4s.server.middleware.Logger
import org.http4s.server.websocket.WebSocketBuilder2
import org.http4s.websocket.WebSocketFrame

import java.nio.charset.StandardCharsets.UTF_8
import scala.concurrent.duration.DurationLong

/** http4s as its documentation writes it: an `HttpRoutes.of` for each route, all of them combined, and its Logger middleware. */
object Vanilla {
  private object UnitParameter extends OptionalQueryParamDecoderMatcher[String]("unit")

  def app(arguments: Arguments): WebSocketBuilder2[IO] => HttpApp[IO] = {
    val numbers = List.range(0, arguments.routes)
    // `foldK` is `<+>` between neighbours: the first that was declared is tried first, and a later one only where none before it fits.
    // Blaze has a builder for each connection: the routes that need none are made once.
    val (routes, last) = ((timestamp :: numbers.flatMap(numbered)).foldK, wrongMethod(numbers))
    arguments.serverLog.foreach(file => RequestLog.to(file, "org.http4s.server.middleware", Level.INFO))
    webSockets => {
      val app = (routes <+> echo(webSockets) <+> pushes(webSockets) <+> last).orNotFound
      // Two lines a request, "GET /path0" and "200 OK": http4s has no middleware that says both in one.
      if (arguments.serverLog.isEmpty) app else Logger.httpApp(logHeaders = false, logBody = false)(app)
    }
  }

  private def numbered(number: Int): List[HttpRoutes[IO]] =
    List(get(s"path$number"), bytes(s"bytes$number"), string(s"string$number"))

  // The backquotes matter: without them the pattern would bind a new `name`, and the first route would answer for all.
  private def get(name: String): HttpRoutes[IO] = HttpRoutes.of[IO] { case GET -> Root / `name` =>
    Ok(name)
  }

  private def bytes(name: String): HttpRoutes[IO] = HttpRoutes.of[IO] { case request @ POST -> Root / `name` =>
    request.as[Array[Byte]].flatMap(body => Ok(s"$name ${body.length}"))
  }

  private def string(name: String): HttpRoutes[IO] = HttpRoutes.of[IO] { case request @ POST -> Root / `name` =>
    request.as[String].flatMap(body => Ok(s"$name ${body.getBytes(UTF_8).length}"))
  }

  private val timestamp: HttpRoutes[IO] = HttpRoutes.of[IO] { case GET -> Root / "ts" :? UnitParameter(asked) =>
    val unit = asked.getOrElse("ms")
    IO(Clock.now(unit)).flatMap(_.fold(BadRequest(Clock.unknown(unit)))(Ok(_)))
  }

  private def echo(webSockets: WebSocketBuilder2[IO]): HttpRoutes[IO] = HttpRoutes.of[IO] { case GET -> Root / "ws" / "echo" =>
    webSockets.build(_.collect { case message @ (_: WebSocketFrame.Text | _: WebSocketFrame.Binary) => message })
  }

  private def pushes(webSockets: WebSocketBuilder2[IO]): HttpRoutes[IO] = HttpRoutes.of[IO] { case GET -> Root / "ws" / "ts" =>
    val times = Stream.awakeEvery[IO](Clock.pushesEveryMillis.millis).evalMap(_ => IO(WebSocketFrame.Text(Clock.nanos)))
    webSockets.build(times, _.drain)
  }

  /** http4s knows routes as functions, so it cannot tell a wrong method from a wrong path: the last route does, where nothing timed comes. */
  private def wrongMethod(numbers: List[Int]): HttpRoutes[IO] = {
    val gets = "ts" :: numbers.map(number => s"path$number")
    val posts = numbers.flatMap(number => List(s"bytes$number", s"string$number"))
    val allowed = (gets.map(_ -> Allow(GET)) ++ posts.map(_ -> Allow(POST))).toMap
    HttpRoutes.of[IO] { case _ -> Root / name if allowed.contains(name) => MethodNotAllowed(allowed(name)) }
  }
}
