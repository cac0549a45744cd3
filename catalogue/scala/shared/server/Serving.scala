package redline

/** How the servers are reached, and what they say when they cannot be. */
object Serving {
  /** The longest body that a server accepts, in bytes. */
  val bodyLimit: Int = 8 * 1024 * 1024

  /** Ends the process, with one line that says why. */
  def cannotServe(arguments: Arguments, reason: Throwable): Nothing = {
    System.err.println(s"cannot serve on ${arguments.host}:${arguments.port}: ${reason.getMessage}")
    // Not sys.exit: hooks that close a server wait for the very thread that failed.
    Runtime.getRuntime.halt(1)
    throw reason
  }
}
