package redline

import org.apache.pekko.stream.scaladsl.{Flow, Sink, Source}
import sttp.capabilities.WebSockets as CanOpen
import sttp.capabilities.pekko.PekkoStreams
import sttp.tapir.*
import sttp.tapir.server.ServerEndpoint
import sttp.ws.WebSocketFrame

import scala.concurrent.Future
import scala.concurrent.duration.DurationLong

/** The catalogue's WebSockets in tapir's words. */
object WebSockets {
  private type Messages = Flow[WebSocketFrame, WebSocketFrame, Any]

  /** With `pings` tapir pings its clients; pekko-http answers theirs. */
  def all(pings: Boolean): List[ServerEndpoint[PekkoStreams & CanOpen, Future]] = {
    val every = Option.when(pings)((13.seconds, WebSocketFrame.ping))
    val body = webSocketBodyRaw(PekkoStreams).autoPing(every).autoPongOnPing(false)
    def opened(name: String, messages: Messages) = endpoint.get.in("ws" / name).out(body).serverLogicSuccessPure[Future](_ => messages)
    List(opened("echo", echo), opened("ts", pushes))
  }

  private val echo: Messages = Flow[WebSocketFrame].collect { case message: WebSocketFrame.Data[?] => message }

  private val pushes: Messages = {
    val every = Clock.pushesEveryMillis.millis
    val times = Source.tick(every, every, ()).map(_ => WebSocketFrame.text(Clock.nanos))
    Flow.fromSinkAndSourceCoupled(Sink.ignore, times)
  }
}
