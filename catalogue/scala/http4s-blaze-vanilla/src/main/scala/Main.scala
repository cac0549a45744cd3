package redline

import cats.effect.{ExitCode, IO, IOApp}

object Main extends IOApp {
  def run(words: List[String]): IO[ExitCode] = {
    val arguments = Arguments.parse(words)
    Blaze.serve(Vanilla.app(arguments), arguments)
  }
}
