package redline

object Main {
  def main(words: Array[String]): Unit = {
    val arguments = Arguments.parse(words.toSeq)
    val route = Vanilla.route(arguments)
    Pekko.serve(arguments.port)(_ => route)
  }
}
