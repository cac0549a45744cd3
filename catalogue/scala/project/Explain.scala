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

  private val colour = "\u001b\\[[0-9;]*m"

  private def of(problem: Throwable): Seq[String] = problem match {
    case unresolved: ResolveException => unresolved.failed.map(module => s"could not be resolved: ${coordinates(module)}")
    case failed: xsbti.CompileFailed => failed.problems.toSeq.filter(_.severity == xsbti.Severity.Error).take(shownErrors).flatMap(of)
    case other => shown(Option(other.getMessage).getOrElse(other.toString))
  }

  private def of(problem: xsbti.Problem): Seq[String] = {
    val source = problem.position.sourcePath.orElse("?").stripPrefix("${BASE}/")
    val line = problem.position.line.map[String](number => s":$number").orElse("")
    s"does not compile: $source$line" +: shown(problem.message)
  }

  private def shown(message: String): Seq[String] =
    message.replaceAll(colour, "").linesIterator.map(_.trim).filter(_.nonEmpty).take(shownLines).toSeq

  private def coordinates(module: ModuleID): String = s"${module.organization}:${module.name}:${module.revision}"
}
