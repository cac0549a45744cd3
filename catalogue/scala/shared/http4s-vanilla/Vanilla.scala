package redline

import cats.effect.IO
import ch.qos.logback.classic.Level
import org.http4s.{HttpApp, HttpRoutes}
import org.http4s.dsl.io.*
import org.http4s.headers.Allow
import org.http4s.server.Router
import org.http4s.server.middleware.Logger

import java.nio.charset.StandardCharsets.UTF_8

/** http4s as its documentation writes it: a Router that mounts routes, each an `HttpRoutes.of` of its own, and its Logger middleware.
  *
  * A route answers 405 because its author says so: http4s knows routes as functions, so it cannot tell a wrong method from a wrong path.
  */
object Vanilla {
  private object UnitParameter extends OptionalQueryParamDecoderMatcher[String]("unit")

  def app(arguments: Arguments): HttpApp[IO] = {
    val mounted = ("/ts" -> timestamp) +: (0 until arguments.routes).flatMap(mappings)
    val app = Router(mounted *).orNotFound
    arguments.serverLog.fold(app) { file =>
      RequestLog.to(file, "org.http4s.server.middleware", Level.INFO)
      // Two lines a request, "GET /path0" and "200 OK": http4s has no middleware that says both in one.
      Logger.httpApp(logHeaders = false, logBody = false)(app)
    }
  }

  private def mappings(number: Int): Seq[(String, HttpRoutes[IO])] = Seq(
    s"/path$number" -> get(s"path$number"),
    s"/bytes$number" -> bytes(s"bytes$number"),
    s"/string$number" -> string(s"string$number"),
  )

  private def get(name: String): HttpRoutes[IO] = HttpRoutes.of[IO] {
    case GET -> Root => Ok(name)
    case _ -> Root => MethodNotAllowed(Allow(GET))
  }

  private def bytes(name: String): HttpRoutes[IO] = HttpRoutes.of[IO] {
    case request @ POST -> Root => request.as[Array[Byte]].flatMap(body => Ok(s"$name ${body.length}"))
    case _ -> Root => MethodNotAllowed(Allow(POST))
  }

  private def string(name: String): HttpRoutes[IO] = HttpRoutes.of[IO] {
    case request @ POST -> Root => request.as[String].flatMap(body => Ok(s"$name ${body.getBytes(UTF_8).length}"))
    case _ -> Root => MethodNotAllowed(Allow(POST))
  }

  private val timestamp: HttpRoutes[IO] = HttpRoutes.of[IO] {
    case GET -> Root :? UnitParameter(asked) =>
      val unit = asked.getOrElse("ms")
      IO(Clock.now(unit)).flatMap(_.fold(BadRequest(Clock.unknown(unit)))(Ok(_)))
    case _ -> Root => MethodNotAllowed(Allow(GET))
  }
}
