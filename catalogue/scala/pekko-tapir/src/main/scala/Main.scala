package redline

object Main {
  def main(words: Array[String]): Unit = {
    val arguments = Arguments.parse(words.toSeq)
    // Before there is an actor system, which sets up SLF4J on threads of its own when it starts.
    val serverLog = Tapir.serverLog(arguments)
    Pekko.serve(arguments.port)(system => Tapir.route(arguments.routes, serverLog)(using system.executionContext))
  }
}
