package redline

import io.netty.buffer.Unpooled
import io.netty.channel.{ChannelHandlerContext, SimpleChannelInboundHandler}
import io.netty.handler.codec.http.{DefaultFullHttpResponse, FullHttpRequest}
import io.netty.handler.codec.http.HttpHeaderNames.{CONTENT_LENGTH, CONTENT_TYPE}
import io.netty.handler.codec.http.HttpHeaderValues.TEXT_PLAIN
import io.netty.handler.codec.http.HttpVersion.HTTP_1_1

import org.slf4j.LoggerFactory

import java.nio.charset.StandardCharsets.UTF_8

/** Answers requests and logs each as a line.
  *
  * Netty's own LoggingHandler tells the events of a channel, a dozen for a request, not requests; whoever wants those writes it so.
  */
final class RoutesHandler(routes: Routes) extends SimpleChannelInboundHandler[FullHttpRequest] {
  private val log = LoggerFactory.getLogger(RoutesHandler.logger)

  override def channelRead0(context: ChannelHandlerContext, request: FullHttpRequest): Unit =
    WebSockets.handler(request) match {
      case Some(handler) => WebSockets.open(context, request, handler)
      case None => answer(context, request)
    }

  private def answer(context: ChannelHandlerContext, request: FullHttpRequest): Unit = {
    val answer = routes.answer(request)
    val content = Unpooled.copiedBuffer(answer.text, UTF_8)
    val response = new DefaultFullHttpResponse(HTTP_1_1, answer.status, content)
    response.headers().set(CONTENT_TYPE, TEXT_PLAIN).setInt(CONTENT_LENGTH, content.readableBytes())
    context.write(response)
    log.info("{} {} {}", request.method, request.uri, answer.status)
    ()
  }

  override def channelReadComplete(context: ChannelHandlerContext): Unit = {
    context.flush()
    ()
  }

  override def exceptionCaught(context: ChannelHandlerContext, cause: Throwable): Unit = {
    context.close()
    ()
  }
}

object RoutesHandler {
  val logger: String = classOf[RoutesHandler].getName
}
