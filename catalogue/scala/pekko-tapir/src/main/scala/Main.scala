package redline

object Main {
  def main(words: Array[String]): Unit = {
    val arguments = Arguments.parse(words.toSeq)
    Pekko.serve(arguments)(system => Tapir.route(arguments)(using system.executionContext))
  }
}
