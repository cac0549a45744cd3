package redline

import ch.qos.logback.classic.{Level, Logger, LoggerContext}
import ch.qos.logback.classic.encoder.PatternLayoutEncoder
import ch.qos.logback.classic.spi.ILoggingEvent
import ch.qos.logback.core.FileAppender
import org.slf4j.LoggerFactory

/** Where the frameworks' own request logging goes: through logback, formatted, into a file of its own. */
object RequestLog {

  /** Writes what the logger `name` says at `level` and above to `file`, and nowhere else.
    *
    * Frameworks log requests at different levels, so the logger's is raised for that one alone. The appender is logback's plain one: it
    * writes each line when it is logged, on the thread that logs it. That is the request's own thread but for pekko's vanilla, whose
    * event bus hands lines to an actor that logs them: the framework's default, so it stays.
    */
  def to(file: String, name: String, level: Level): Unit = {
    val context = LoggerFactory.getILoggerFactory.asInstanceOf[LoggerContext]
    val logger: Logger = context.getLogger(name)
    logger.setLevel(level)
    logger.setAdditive(false)
    logger.addAppender(appender(context, file))
  }

  private def appender(context: LoggerContext, file: String): FileAppender[ILoggingEvent] = {
    val encoder = new PatternLayoutEncoder
    encoder.setContext(context)
    encoder.setPattern("%d{HH:mm:ss.SSS} [%thread] %-5level %logger{36} - %msg%n")
    encoder.start()
    val appender = new FileAppender[ILoggingEvent]
    appender.setContext(context)
    appender.setName("requests")
    appender.setFile(file)
    appender.setEncoder(encoder)
    appender.start()
    appender
  }
}
