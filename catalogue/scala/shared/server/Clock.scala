package redline

import java.time.Instant

/** The server's epoch time as `GET /ts` answers it. */
object Clock {
  private val nanosPerSecond = 1000000000L

  /** Now in the unit asked for, `ms` or `ns`, as decimal text; None when it is another unit. */
  def now(unit: String): Option[String] = unit match {
    case "ms" => Some(Instant.now().toEpochMilli.toString)
    case "ns" => Some(nanos)
    case _ => None
  }

  /** Now in nanoseconds, as decimal text: what a WebSocket is pushed. */
  def nanos: String = {
    val now = Instant.now()
    (now.getEpochSecond * nanosPerSecond + now.getNano).toString
  }

  /** The time between two pushes. */
  val pushesEveryMillis: Long = 100

  def unknown(unit: String): String = s"the unit is ms or ns, not $unit"
}
