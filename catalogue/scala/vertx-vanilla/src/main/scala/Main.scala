package redline

import ch.qos.logback.classic.Level
import io.vertx.core.Vertx
import io.vertx.core.buffer.Buffer
import io.vertx.core.http.ServerWebSocket
import io.vertx.ext.web.{Router, RoutingContext}
import io.vertx.ext.web.handler.{BodyHandler, LoggerHandler}

import java.nio.charset.StandardCharsets.UTF_8

/** Vert.x as its documentation writes it: a Router, a route and a handler per path, and its LoggerHandler. */
object Main {
  def main(words: Array[String]): Unit = {
    val arguments = Arguments.parse(words.toSeq)
    // Its LoggerHandler logs as `impl.LoggerHandlerImpl` here in Vert.x 4, and as `LoggerHandler` in Vert.x 5.
    arguments.serverLog.foreach(RequestLog.to(_, "io.vertx.ext.web.handler", Level.INFO))
    Verticles.deploy(Verticles.vertx(arguments), arguments)(router(_, arguments))
  }

  private def router(vertx: Vertx, arguments: Arguments): Router = {
    val router = Router.router(vertx)
    if (arguments.serverLog.isDefined) router.route().handler(LoggerHandler.create())
    router.get("/ts").handler(timestamp(_))
    router.get("/ws/echo").handler(opened(_)(echo))
    router.get("/ws/ts").handler(opened(_)(push(vertx, _)))
    (0 until arguments.routes).foreach(addRoutes(router, _))
    router
  }

  private def addRoutes(router: Router, number: Int): Unit = {
    val path = s"path$number"
    val bytes = s"bytes$number"
    val string = s"string$number"
    router.get(s"/$path").handler(context => answer(context, path))
    router
      .post(s"/$bytes")
      .handler(bodies)
      .handler(context => answer(context, s"$bytes ${body(context).getBytes.length}"))
    router
      .post(s"/$string")
      .handler(bodies)
      .handler(context => answer(context, s"$string ${body(context).toString(UTF_8).getBytes(UTF_8).length}"))
    ()
  }

  private def bodies: BodyHandler = BodyHandler.create(false).setBodyLimit(Serving.bodyLimit.toLong)

  /** The body; Vert.x has none where the request's is empty. */
  private def body(context: RoutingContext): Buffer = Option(context.body().buffer()).getOrElse(Buffer.buffer())

  private def timestamp(context: RoutingContext): Unit = {
    val unit = context.queryParams().get("unit") match {
      case null => "ms"
      case asked => asked
    }
    Clock.now(unit) match {
      case Some(time) => answer(context, time)
      case None =>
        context.response().setStatusCode(400)
        answer(context, Clock.unknown(unit))
    }
  }

  /** Opens a WebSocket; where the request asks for none, Vert.x answers that. */
  private def opened(context: RoutingContext)(serve: ServerWebSocket => Unit): Unit = {
    context.request().toWebSocket().onSuccess(socket => serve(socket))
    ()
  }

  private def echo(socket: ServerWebSocket): Unit = {
    socket.textMessageHandler { text =>
      socket.writeTextMessage(text)
      ()
    }
    socket.binaryMessageHandler { bytes =>
      socket.writeBinaryMessage(bytes)
      ()
    }
    ()
  }

  private def push(vertx: Vertx, socket: ServerWebSocket): Unit = {
    val timer = vertx.setPeriodic(
      Clock.pushesEveryMillis,
      _ => {
        socket.writeTextMessage(Clock.nanos)
        ()
      },
    )
    socket.closeHandler { _ =>
      vertx.cancelTimer(timer)
      ()
    }
    ()
  }

  private def answer(context: RoutingContext, text: String): Unit = {
    context.response().putHeader("content-type", "text/plain").end(text)
    ()
  }
}
