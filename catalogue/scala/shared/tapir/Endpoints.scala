package redline

import sttp.model.StatusCode
import sttp.tapir.*
import sttp.tapir.server.ServerEndpoint

import java.nio.charset.StandardCharsets.UTF_8

/** The catalogue's contract in tapir's words: an endpoint of its own, with logic of its own, for each route. */
object Endpoints {
  def all[F[_]](routes: Int): List[ServerEndpoint[Any, F]] =
    timestamp[F] :: List.range(0, routes).flatMap(number => List(get[F](number), bytes[F](number), string[F](number)))

  private def get[F[_]](number: Int): ServerEndpoint[Any, F] = {
    val name = s"path$number"
    endpoint.get.in(name).out(stringBody).serverLogicSuccessPure[F](_ => name)
  }

  private def bytes[F[_]](number: Int): ServerEndpoint[Any, F] = {
    val name = s"bytes$number"
    endpoint.post.in(name).in(byteArrayBody).out(stringBody).serverLogicSuccessPure[F](body => s"$name ${body.length}")
  }

  private def string[F[_]](number: Int): ServerEndpoint[Any, F] = {
    val name = s"string$number"
    endpoint.post
      .in(name)
      .in(stringBody)
      .out(stringBody)
      .serverLogicSuccessPure[F](body => s"$name ${body.getBytes(UTF_8).length}")
  }

  private def timestamp[F[_]]: ServerEndpoint[Any, F] =
    endpoint.get
      .in("ts")
      .in(query[String]("unit").default("ms"))
      .errorOut(statusCode(StatusCode.BadRequest).and(stringBody))
      .out(stringBody)
      .serverLogicPure[F](unit => Clock.now(unit).toRight(Clock.unknown(unit)))
}
