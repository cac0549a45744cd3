package redline

import io.netty.channel.{ChannelFuture, ChannelFutureListener, ChannelHandler, ChannelHandlerContext, SimpleChannelInboundHandler}
import io.netty.handler.codec.http.FullHttpRequest
import io.netty.handler.codec.http.HttpHeaderNames.UPGRADE
import io.netty.handler.codec.http.HttpHeaderValues.WEBSOCKET
import io.netty.handler.codec.http.websocketx.{
  CloseWebSocketFrame,
  PingWebSocketFrame,
  PongWebSocketFrame,
  TextWebSocketFrame,
  WebSocketFrame,
  WebSocketFrameAggregator,
  WebSocketServerHandshaker,
  WebSocketServerHandshakerFactory,
}

import java.util.concurrent.TimeUnit.MILLISECONDS

/** WebSockets as Netty's examples write them: a handshaker, and a handler of frames. */
object WebSockets {
  private val mostBytes = 65536

  /** What serves the WebSocket that a request asks for; None where it asks for none. */
  def handler(request: FullHttpRequest): Option[WebSocketServerHandshaker => ChannelHandler] =
    if (!request.headers().containsValue(UPGRADE, WEBSOCKET, true)) None
    else
      request.uri() match {
        case "/ws/echo" => Some(new Echo(_))
        case "/ws/ts" => Some(new Push(_))
        case _ => None
      }

  def open(context: ChannelHandlerContext, request: FullHttpRequest, handler: WebSocketServerHandshaker => ChannelHandler): Unit = {
    val url = s"ws://${request.headers().get("Host")}${request.uri()}"
    val handshaker = new WebSocketServerHandshakerFactory(url, null, false, mostBytes).newHandshaker(request)
    if (handshaker == null) WebSocketServerHandshakerFactory.sendUnsupportedVersionResponse(context.channel())
    else {
      handshaker.handshake(context.channel(), request)
      context.pipeline().addLast(new WebSocketFrameAggregator(mostBytes), handler(handshaker))
    }
    ()
  }
}

abstract class Frames(handshaker: WebSocketServerHandshaker) extends SimpleChannelInboundHandler[WebSocketFrame] {
  def message(context: ChannelHandlerContext, frame: WebSocketFrame): Unit

  override def channelRead0(context: ChannelHandlerContext, frame: WebSocketFrame): Unit = {
    frame match {
      case close: CloseWebSocketFrame => handshaker.close(context.channel(), close.retain())
      case ping: PingWebSocketFrame => context.writeAndFlush(new PongWebSocketFrame(ping.content().retain()))
      case _: PongWebSocketFrame => ()
      case other => message(context, other)
    }
    ()
  }

  override def exceptionCaught(context: ChannelHandlerContext, cause: Throwable): Unit = {
    context.close()
    ()
  }
}

final class Echo(handshaker: WebSocketServerHandshaker) extends Frames(handshaker) {
  override def message(context: ChannelHandlerContext, frame: WebSocketFrame): Unit = {
    context.write(frame.retain())
    ()
  }

  override def channelReadComplete(context: ChannelHandlerContext): Unit = {
    context.flush()
    ()
  }
}

final class Push(handshaker: WebSocketServerHandshaker) extends Frames(handshaker) {
  override def handlerAdded(context: ChannelHandlerContext): Unit = {
    val every = Clock.pushesEveryMillis
    val push: Runnable = () => {
      context.writeAndFlush(new TextWebSocketFrame(Clock.nanos))
      ()
    }
    val pushes = context.executor().scheduleAtFixedRate(push, every, every, MILLISECONDS)
    // Not a lambda: Scala makes one of the listener's wildcard type that the JVM does not link.
    context
      .channel()
      .closeFuture()
      .addListener(new ChannelFutureListener {
        override def operationComplete(closed: ChannelFuture): Unit = {
          pushes.cancel(false)
          ()
        }
      })
    ()
  }

  override def message(context: ChannelHandlerContext, frame: WebSocketFrame): Unit = ()
}
