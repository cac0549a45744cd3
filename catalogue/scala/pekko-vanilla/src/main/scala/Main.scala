package redline

object Main {
  def main(words: Array[String]): Unit = {
    val arguments = Arguments.parse(words.toSeq)
    Pekko.serve(arguments)(_ => Vanilla.route(arguments))
  }
}
