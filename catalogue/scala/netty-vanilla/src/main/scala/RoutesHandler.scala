package redline

import io.netty.buffer.Unpooled
import io.netty.channel.{ChannelHandlerContext, SimpleChannelInboundHandler}
import io.netty.handler.codec.http.{DefaultFullHttpResponse, FullHttpRequest}
import io.netty.handler.codec.http.HttpHeaderNames.{CONTENT_LENGTH, CONTENT_TYPE}
import io.netty.handler.codec.http.HttpHeaderValues.TEXT_PLAIN
import io.netty.handler.codec.http.HttpVersion.HTTP_1_1

import java.nio.charset.StandardCharsets.UTF_8

final class RoutesHandler(routes: Routes) extends SimpleChannelInboundHandler[FullHttpRequest] {
  override def channelRead0(context: ChannelHandlerContext, request: FullHttpRequest): Unit = {
    val answer = routes.answer(request)
    val content = Unpooled.copiedBuffer(answer.text, UTF_8)
    val response = new DefaultFullHttpResponse(HTTP_1_1, answer.status, content)
    response.headers().set(CONTENT_TYPE, TEXT_PLAIN).setInt(CONTENT_LENGTH, content.readableBytes())
    context.write(response)
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
