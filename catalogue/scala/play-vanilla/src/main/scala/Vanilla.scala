package redline

import ch.qos.logback.classic.Level
import play.api.mvc.EssentialFilter
import play.api.mvc.Results.*
import play.api.routing.Router
import play.api.routing.Router.Routes
import play.api.routing.sird.*

import java.nio.charset.StandardCharsets.UTF_8

/** Play as its documentation writes it: the String Interpolating Routing DSL, routes composed with `orElse`, and a logging filter. */
final class Vanilla(val arguments: Arguments) extends Play {
  private val numbers = 0 until arguments.routes

  override lazy val router: Router =
    Router.from((timestamp +: numbers.flatMap(numbered)).reduce(_ orElse _) orElse wrongMethod)

  override val httpFilters: Seq[EssentialFilter] = arguments.serverLog.toSeq.map { file =>
    RequestLog.to(file, classOf[LoggingFilter].getName, Level.INFO)
    new LoggingFilter
  }

  private def numbered(number: Int): Seq[Routes] = Seq(get(s"path$number"), bytes(s"bytes$number"), string(s"string$number"))

  // The backquotes matter: without them the pattern would bind a new `name`, and the first route would answer for all.
  private def get(name: String): Routes = { case GET(p"/${`name`}") =>
    Action(Ok(name))
  }

  private def bytes(name: String): Routes = { case POST(p"/${`name`}") =>
    Action(parse.byteString)(request => Ok(s"$name ${request.body.length}"))
  }

  private def string(name: String): Routes = { case POST(p"/${`name`}") =>
    Action(parse.tolerantText)(request => Ok(s"$name ${request.body.getBytes(UTF_8).length}"))
  }

  private val timestamp: Routes = { case GET(p"/ts" ? q_o"unit=$asked") =>
    Action {
      val unit = asked.getOrElse("ms")
      Clock.now(unit).fold(BadRequest(Clock.unknown(unit)))(Ok(_))
    }
  }

  /** Play answers 404 where a path is known and the method is not, so the last route says 405; what is timed never comes this far. */
  private val wrongMethod: Routes = {
    val known = numbers.flatMap(number => Seq(s"path$number", s"bytes$number", s"string$number")).toSet + "ts"
    val routes: Routes = { case p"/$name" if known(name) =>
      Action(MethodNotAllowed)
    }
    routes
  }
}
