import sbt.*
import sbt.librarymanagement.ResolveException

/** What went wrong in a task, said plainly. */
object Explain {
  private val shownErrors = 3
  private val shownLines = 5

  def lines(cause: Incomplete): Seq[String] =
    Incomplete.allExceptions(cause).toSeq.flatMap(of).distinct match {
      case Seq() => Seq("failed; the output above says why")
      case found => found
    }

  private def of(problem: Throwable): Seq[String] = problem match {
    case unresolved: ResolveException => unresolved.failed.map(module => s"could not be resolved: ${coordinates(module)}")
    case failed: xsbti.CompileFailed => failed.problems.toSeq.filter(_.severity == xsbti.Severity.Error).take(shownErrors).flatMap(of)
    case other => Option(other.getMessage).getOrElse(other.toString).linesIterator.take(shownLines).toSeq
  }

  private def of(problem: xsbti.Problem): Seq[String] = {
    val source = problem.position.sourcePath.orElse("?")
    val line = problem.position.line.map[String](number => s":$number").orElse("")
    s"does not compile: $source$line" +: problem.message.linesIterator.take(shownLines).toSeq
  }

  private def coordinates(module: ModuleID): String = s"${module.organization}:${module.name}:${module.revision}"
}
