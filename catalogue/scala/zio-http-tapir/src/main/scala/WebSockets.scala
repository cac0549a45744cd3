package redline

import sttp.capabilities.WebSockets as CanOpen
import sttp.capabilities.zio.ZioStreams
import sttp.tapir.*
import sttp.tapir.server.ServerEndpoint
import sttp.ws.WebSocketFrame
import zio.stream.{Stream, ZStream}
import zio.{Schedule, Task, ZIO, durationLong}

import scala.concurrent.duration.{FiniteDuration, SECONDS}

/** The catalogue's WebSockets in tapir's words. */
object WebSockets {
  private type Messages = Stream[Throwable, WebSocketFrame] => Stream[Throwable, WebSocketFrame]

  /** With `pings` tapir pings its clients. It answers theirs, as zio-http leaves that to it. */
  def all(pings: Boolean): List[ServerEndpoint[ZioStreams & CanOpen, Task]] = {
    val every = Option.when(pings)((FiniteDuration(13, SECONDS), WebSocketFrame.ping))
    val body = webSocketBodyRaw(ZioStreams).decodeCloseRequests(false).autoPing(every).autoPongOnPing(true)
    def opened(name: String, messages: Messages) = endpoint.get.in("ws" / name).out(body).serverLogicSuccessPure[Task](_ => messages)
    List(opened("echo", echo), opened("ts", pushes))
  }

  private val echo: Messages = _.collect { case message: WebSocketFrame.Data[?] => message }

  private val pushes: Messages = received => {
    val times = ZStream.fromSchedule(Schedule.fixed(Clock.pushesEveryMillis.millis))
    times.mapZIO(_ => ZIO.succeed(WebSocketFrame.text(Clock.nanos))).mergeHaltRight(received.drain)
  }
}
