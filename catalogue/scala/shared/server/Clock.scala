package redline

import java.time.Instant

/** The server's epoch time as `GET /ts` answers it. */
object Clock {
  private val nanosPerSecond = 1000000000L

  /** Now in the unit asked for, `ms` or `ns`, as decimal text; None when it is another unit. */
  def now(unit: String): Option[String] = unit match {
    case "ms" => Some(Instant.now().toEpochMilli.toString)
    case "ns" =>
      val now = Instant.now()
      Some((now.getEpochSecond * nanosPerSecond + now.getNano).toString)
    case _ => None
  }

  def unknown(unit: String): String = s"the unit is ms or ns, not $unit"
}
