package redline

object Main {
  def main(words: Array[String]): Unit = Play.serve(new Tapir(Arguments.parse(words.toSeq)))
}
