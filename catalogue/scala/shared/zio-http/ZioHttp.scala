package redline

import zio.*
import zio.http.*
import zio.logging.LogFormat
import zio.logging.backend.SLF4J

/** zio-http with its defaults, but for the longest body (100 KiB) and how long it waits for its last requests when stopped (10 s).
  *
  * What ZIO logs goes through SLF4J, as zio-logging's documentation sets it up.
  */
trait ZioHttp extends ZIOAppDefault {
  def routes(arguments: Arguments): Routes[Any, Response]

  override val bootstrap: ZLayer[ZIOAppArgs, Any, Any] = Runtime.removeDefaultLoggers >>> SLF4J.slf4j(lineWithAnnotations)

  override def run: ZIO[ZIOAppArgs & Scope, Any, Any] =
    getArgs.map(Arguments.parse(_)).flatMap { arguments =>
      Server
        .serve(routes(arguments))
        .provide(Server.defaultWith(configured(arguments, _)))
        .tapErrorCause(cause => ZIO.attempt(Serving.cannotServe(arguments, cause.squash)))
    }

  /** The annotations, which hold the method, the URL and the status, in the message: the pattern would leave key-value pairs out. */
  private def lineWithAnnotations: LogFormat =
    LogFormat.make { (message, _, _, _, line, _, _, _, annotations) =>
      message.appendText((line() +: annotations.toSeq.map((name, value) => s"$name=$value")).mkString(" "))
    } + LogFormat.cause

  private def configured(arguments: Arguments, default: Server.Config): Server.Config =
    default
      .binding(arguments.host, arguments.port)
      .disableRequestStreaming(Serving.bodyLimit)
      .gracefulShutdownTimeout(1.second)
}
