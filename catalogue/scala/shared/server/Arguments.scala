package redline

/** What the lab asks of a server.
  *
  * @param host
  *   the address to listen on
  * @param routes
  *   how many routes of each kind
  * @param serverLog
  *   where requests are logged; None when they are not
  * @param cpus
  *   the cores it may use, for frameworks that want to be told
  * @param connections
  *   how many connections at once, for servers that have such a limit
  * @param pings
  *   whether WebSockets are pinged, for servers that can
  */
final case class Arguments(
    host: String,
    port: Int,
    routes: Int,
    serverLog: Option[String],
    cpus: Int,
    connections: Option[Int],
    pings: Boolean,
)

object Arguments {

  /** `--host ADDRESS --port N --routes N --cpus N --interceptor off|server-log --log FILE [--connections N] [--pings on|off]`, in any order; ends the process when they are wrong. */
  def parse(words: Seq[String]): Arguments = {
    val values = words.grouped(2).collect { case Seq(flag, value) => flag -> value }.toMap
    def text(flag: String): String = values.getOrElse(flag, wrong(s"$flag VALUE is missing"))
    def number(flag: String): Int = text(flag).toIntOption.getOrElse(wrong(s"$flag wants a whole number, not ${text(flag)}"))
    val serverLog = text("--interceptor") match {
      case "off" => None
      case "server-log" => Some(text("--log"))
      case other => wrong(s"--interceptor is off or server-log, not $other")
    }
    val connections = Option.when(values.contains("--connections"))(number("--connections"))
    Arguments(text("--host"), number("--port"), number("--routes"), serverLog, number("--cpus"), connections, values.get("--pings").contains("on"))
  }

  private def wrong(reason: String): Nothing = {
    System.err.println(reason)
    sys.exit(2)
  }
}
