package redline

import play.core.server.{DefaultPekkoHttpServerComponents, ServerConfig}

import scala.util.control.NonFatal

/** Play's embedded server with its defaults, as its documentation puts it together where a component is to be another. */
trait Play extends DefaultPekkoHttpServerComponents {
  def arguments: Arguments

  override lazy val serverConfig: ServerConfig = ServerConfig(port = Some(arguments.port), address = arguments.host)
}

object Play {

  /** Starts it. SIGTERM ends it: the coordinated shutdown of its actor system hears of it. */
  def serve(play: Play): Unit =
    try {
      play.server
      ()
    } catch {
      case NonFatal(reason) => Serving.cannotServe(play.arguments, reason)
    }
}
