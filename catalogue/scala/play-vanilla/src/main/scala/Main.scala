package redline

object Main {
  def main(words: Array[String]): Unit = Play.serve(new Vanilla(Arguments.parse(words.toSeq)))
}
