package redline

import ch.qos.logback.classic.Level
import io.netty.bootstrap.ServerBootstrap
import io.netty.channel.{ChannelInitializer, ChannelOption, EventLoopGroup}
import io.netty.channel.epoll.{Epoll, EpollEventLoopGroup, EpollServerSocketChannel}
import io.netty.channel.nio.NioEventLoopGroup
import io.netty.channel.socket.SocketChannel
import io.netty.channel.socket.nio.NioServerSocketChannel
import io.netty.handler.codec.http.{HttpObjectAggregator, HttpServerCodec, HttpServerKeepAliveHandler}

import scala.annotation.nowarn

/** Netty as its examples write an HTTP server: a codec, an aggregator and a handler. */
object Main {

  /** Netty's native transport where there is one, as tapir's servers on Netty choose by default. */
  private val epoll = Epoll.isAvailable

  def main(words: Array[String]): Unit = {
    val arguments = Arguments.parse(words.toSeq)
    arguments.serverLog.foreach(RequestLog.to(_, RoutesHandler.logger, Level.INFO))
    val bootstrap = new ServerBootstrap()
      .group(eventLoops(1), eventLoops(0))
      .channel(if (epoll) classOf[EpollServerSocketChannel] else classOf[NioServerSocketChannel])
      .option(ChannelOption.SO_BACKLOG, Int.box(1024))
      .childHandler(new Pipeline(Routes.all(arguments.routes)))
    val bound = bootstrap.bind(arguments.host, arguments.port).await()
    if (!bound.isSuccess) Serving.cannotServe(arguments, bound.cause)
  }

  /** With 0 threads as many as Netty takes by default. Netty 4.2 has these as deprecated, and 4.1 nothing else. */
  @nowarn("cat=deprecation")
  private def eventLoops(threads: Int): EventLoopGroup =
    if (epoll) new EpollEventLoopGroup(threads) else new NioEventLoopGroup(threads)
}

final class Pipeline(routes: Routes) extends ChannelInitializer[SocketChannel] {
  override def initChannel(channel: SocketChannel): Unit = {
    val pipeline = channel.pipeline()
    pipeline.addLast(new HttpServerCodec(), new HttpServerKeepAliveHandler())
    pipeline.addLast(new HttpObjectAggregator(Serving.bodyLimit), new RoutesHandler(routes))
    ()
  }
}
