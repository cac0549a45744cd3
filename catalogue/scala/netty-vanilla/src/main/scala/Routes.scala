package redline

import io.netty.handler.codec.http.{FullHttpRequest, HttpMethod, HttpResponseStatus, QueryStringDecoder}
import io.netty.handler.codec.http.HttpMethod.{GET, POST}
import io.netty.handler.codec.http.HttpResponseStatus.{BAD_REQUEST, METHOD_NOT_ALLOWED, NOT_FOUND, OK}

import java.nio.charset.StandardCharsets.UTF_8

final case class Answer(status: HttpResponseStatus, text: String)

final case class Route(method: HttpMethod, path: String, handle: FullHttpRequest => Answer)

/** Netty has no router; its users keep their handlers in a map by path, and so does this. */
final class Routes(routes: Seq[Route]) {
  private val byPath = routes.map(route => route.path -> route).toMap

  def answer(request: FullHttpRequest): Answer =
    byPath.get(new QueryStringDecoder(request.uri()).path()) match {
      case None => Answer(NOT_FOUND, "there is no such path")
      case Some(route) if route.method != request.method() => Answer(METHOD_NOT_ALLOWED, s"only ${route.method}")
      case Some(route) => route.handle(request)
    }
}

object Routes {
  def all(routes: Int): Routes =
    new Routes(timestamp +: (0 until routes).flatMap(number => Seq(get(number), bytes(number), string(number))))

  private def get(number: Int): Route = Route(GET, s"/path$number", _ => Answer(OK, s"path$number"))

  private def bytes(number: Int): Route = Route(
    POST,
    s"/bytes$number",
    request => {
      val body = new Array[Byte](request.content().readableBytes())
      request.content().readBytes(body)
      Answer(OK, s"bytes$number ${body.length}")
    },
  )

  private def string(number: Int): Route = Route(
    POST,
    s"/string$number",
    request => Answer(OK, s"string$number ${request.content().toString(UTF_8).getBytes(UTF_8).length}"),
  )

  private def timestamp: Route = Route(
    GET,
    "/ts",
    request => {
      val asked = new QueryStringDecoder(request.uri()).parameters().get("unit")
      val unit = if (asked == null) "ms" else asked.get(0)
      Clock.now(unit).fold(Answer(BAD_REQUEST, Clock.unknown(unit)))(Answer(OK, _))
    },
  )
}
