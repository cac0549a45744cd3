package redline

import org.apache.pekko.stream.Materializer
import play.api.Logging
import play.api.mvc.{Filter, RequestHeader, Result}

import scala.concurrent.{ExecutionContext, Future}

/** A line for each request, as the filter that Play's documentation shows. */
final class LoggingFilter(using val mat: Materializer, executor: ExecutionContext) extends Filter with Logging {
  def apply(next: RequestHeader => Future[Result])(request: RequestHeader): Future[Result] = {
    val start = System.currentTimeMillis
    next(request).map { result =>
      val took = System.currentTimeMillis - start
      logger.info(s"${request.method} ${request.uri} took ${took}ms and returned ${result.header.status}")
      result
    }
  }
}
