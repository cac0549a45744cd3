package redline

import ch.qos.logback.classic.Level
import zio.{Schedule, ZIO, durationLong}
import zio.http.*

import java.nio.charset.StandardCharsets.UTF_8

/** zio-http as its documentation writes it: Routes, a handler each, and its logging middleware. */
object Vanilla {
  def routes(arguments: Arguments): Routes[Any, Response] = {
    val numbers = 0 until arguments.routes
    val names = "ts" +: numbers.flatMap(number => Seq(s"path$number", s"bytes$number", s"string$number"))
    val routes = Routes.fromIterable((echo +: pushes +: timestamp +: numbers.flatMap(numbered)) ++ names.map(wrongMethod))
    arguments.serverLog.fold(routes) { file =>
      RequestLog.to(file, "redline.Vanilla", Level.INFO)
      routes @@ Middleware.requestLogging()
    }
  }

  private def numbered(number: Int): Seq[Route[Any, Response]] =
    Seq(get(s"path$number"), bytes(s"bytes$number"), string(s"string$number"))

  private val echo: Route[Any, Response] = Method.GET / "ws" / "echo" -> handler {
    Handler.webSocket { channel =>
      channel.receiveAll {
        case ChannelEvent.Read(message @ (WebSocketFrame.Text(_) | WebSocketFrame.Binary(_))) => channel.send(ChannelEvent.Read(message))
        case _ => ZIO.unit
      }
    }.toResponse
  }

  private val pushes: Route[Any, Response] = Method.GET / "ws" / "ts" -> handler {
    Handler.webSocket { channel =>
      val every = Clock.pushesEveryMillis.millis
      val push = ZIO.suspendSucceed(channel.send(ChannelEvent.Read(WebSocketFrame.text(Clock.nanos))))
      push.schedule(Schedule.fixed(every)).delay(every).race(channel.receiveAll(_ => ZIO.unit))
    }.toResponse
  }

  private def get(name: String): Route[Any, Response] =
    Method.GET / name -> handler(Response.text(name))

  private def bytes(name: String): Route[Any, Response] =
    Method.POST / name -> handler { (request: Request) =>
      request.body.asArray.map(body => Response.text(s"$name ${body.length}")).orDie
    }

  private def string(name: String): Route[Any, Response] =
    Method.POST / name -> handler { (request: Request) =>
      request.body.asString.map(body => Response.text(s"$name ${body.getBytes(UTF_8).length}")).orDie
    }

  private val timestamp: Route[Any, Response] =
    Method.GET / "ts" -> handler { (request: Request) =>
      val unit = request.url.queryParams.queryParam("unit").getOrElse("ms")
      ZIO.succeed(Clock.now(unit).fold(Response.text(Clock.unknown(unit)).status(Status.BadRequest))(Response.text(_)))
    }

  /** zio-http answers 404 where a path is known and the method is not, unless it is told. Of routes that fit, the earlier answers. */
  private def wrongMethod(name: String): Route[Any, Response] = Method.ANY / name -> Handler.methodNotAllowed
}
