package redline

import cats.effect.IO
import fs2.{Pipe, Stream}
import sttp.capabilities.WebSockets as CanOpen
import sttp.capabilities.fs2.Fs2Streams
import sttp.tapir.*
import sttp.tapir.server.ServerEndpoint
import sttp.ws.WebSocketFrame

import scala.concurrent.duration.DurationLong

/** The catalogue's WebSockets in tapir's words. */
object WebSockets {
  private type Messages = Pipe[IO, WebSocketFrame, WebSocketFrame]

  /** Raw frames take tapir's fast path; with `pings` they do not: tapir then pings its clients.
    *
    * `pongs`: tapir answers the pings of clients, as its server does not.
    */
  def all(pings: Boolean, pongs: Boolean): List[ServerEndpoint[Fs2Streams[IO] with CanOpen, IO]] = {
    val every = Option.when(pings)((13.seconds, WebSocketFrame.ping))
    val body = webSocketBodyRaw(Fs2Streams[IO]).decodeCloseRequests(false).autoPing(every).autoPongOnPing(pongs)
    def opened(name: String, messages: Messages) = endpoint.get.in("ws" / name).out(body).serverLogicSuccessPure[IO](_ => messages)
    List(opened("echo", echo), opened("ts", pushes))
  }

  private val echo: Messages = _.collect { case message: WebSocketFrame.Data[?] => message }

  private val pushes: Messages = received => {
    val times = Stream.awakeEvery[IO](Clock.pushesEveryMillis.millis).evalMap(_ => IO(WebSocketFrame.text(Clock.nanos)))
    times.interruptWhen(received.compile.drain.attempt)
  }
}
