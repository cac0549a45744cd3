package redline

import ch.qos.logback.classic.Level
import io.netty.bootstrap.ServerBootstrap
import io.netty.channel.{ChannelInitializer, ChannelOption}
import io.netty.channel.nio.NioEventLoopGroup
import io.netty.channel.socket.SocketChannel
import io.netty.channel.socket.nio.NioServerSocketChannel
import io.netty.handler.codec.http.{HttpObjectAggregator, HttpServerCodec, HttpServerKeepAliveHandler}
import io.netty.handler.logging.{ByteBufFormat, LoggingHandler, LogLevel}

/** Netty as its examples write an HTTP server: a codec, an aggregator and a handler; its LoggingHandler logs. */
object Main {
  def main(words: Array[String]): Unit = {
    val arguments = Arguments.parse(words.toSeq)
    arguments.serverLog.foreach(RequestLog.to(_, "requests", Level.INFO))
    val bootstrap = new ServerBootstrap()
      .group(new NioEventLoopGroup(1), new NioEventLoopGroup())
      .channel(classOf[NioServerSocketChannel])
      .option(ChannelOption.SO_BACKLOG, Int.box(1024))
      .childHandler(new Pipeline(Routes.all(arguments.routes), arguments.serverLog.isDefined))
    val bound = bootstrap.bind(Serving.host, arguments.port).await()
    if (!bound.isSuccess) Serving.cannotServe(arguments.port, bound.cause)
  }
}

final class Pipeline(routes: Routes, logged: Boolean) extends ChannelInitializer[SocketChannel] {
  override def initChannel(channel: SocketChannel): Unit = {
    val pipeline = channel.pipeline()
    pipeline.addLast(new HttpServerCodec(), new HttpServerKeepAliveHandler(), new HttpObjectAggregator(Serving.bodyLimit))
    // After the aggregator, so that it tells whole requests and answers. It tells each as several events of several lines: Netty has
    // nothing that says a request in one.
    if (logged) pipeline.addLast(new LoggingHandler("requests", LogLevel.INFO, ByteBufFormat.SIMPLE))
    pipeline.addLast(new RoutesHandler(routes))
    ()
  }
}
