import java.nio.file.{FileSystemException, Files, Path}

import sbt.*
import sbt.Keys.*
import sbt.complete.DefaultParsers.spaceDelimited

/** `bundles TARGET...` leaves each server in `out/TARGET`, ready for `java @out/TARGET/java.args`. */
object Bundle extends AutoPlugin {
  object autoImport {
    val bundle = taskKey[Unit]("Leave this server's jars and java.args in out/.")
    val bundled = taskKey[Option[Bundle.Failure]]("Bundle this server; why it could not be done, if it could not.")
    val bundles = inputKey[Unit]("Bundle the servers named, each tried whatever becomes of the others.")
  }
  import autoImport.*

  /** Why a target could not be built, as lines for people. */
  final case class Failure(target: String, lines: Seq[String])

  override def trigger = allRequirements
  override def requires = plugins.JvmPlugin

  override def projectSettings: Seq[Setting[?]] = Seq(
    bundle := {
      val out = outFolder((ThisBuild / baseDirectory).value, name.value + Servers.suffix)
      val jars = (Runtime / fullClasspathAsJars).value.map(_.data.toPath)
      val main = (Compile / mainClass).value.getOrElse(sys.error("there is no main class, or more than one"))
      write(out.toPath, s"out/${name.value}${Servers.suffix}/lib", jars, main)
      streams.value.log.success(s"${name.value}: ${jars.size} jars")
    },
    bundled := (bundle.result.value match {
      case Inc(cause) => Some(Failure(name.value, Explain.lines(cause)))
      case Value(_) => None
    }),
  )

  override def buildSettings: Seq[Setting[?]] = Seq(
    bundles := Def.inputTaskDyn {
      val targets = spaceDelimited("TARGET...").parsed
      val known = loadedBuild.value.allProjectRefs.map(_._1.project).toSet
      val (here, unknown) = targets.partition(known)
      val root = baseDirectory.value
      Def.task {
        val results = bundled.all(ScopeFilter(inProjects(here.map(LocalProject(_)) *))).value
        val failures = results.flatten ++ unknown.map(Failure(_, Seq("there is no such target in this build")))
        failures.foreach(failure => IO.writeLines(outFolder(root, failure.target + Servers.suffix) / "failure.txt", failure.lines))
        if (failures.nonEmpty) throw new MessageOnlyException(s"could not be built: ${failures.map(_.target).mkString(", ")}")
      }
    }.evaluated,
  )

  private def outFolder(root: File, target: String): File = root / "out" / target

  /** The jars under `lib`, then, when all are there, the argfile that names them in the order of the class path. */
  private def write(out: Path, shownLib: String, jars: Seq[Path], main: String): Unit = {
    val lib = out.resolve("lib")
    IO.delete(lib.toFile)
    Files.createDirectories(lib)
    val names = unique(jars.map(_.getFileName.toString))
    jars.zip(names).foreach { case (jar, name) => place(jar, lib.resolve(name)) }
    val classPath = names.map(name => s"$shownLib/$name").mkString(":")
    IO.write(out.resolve("java.args").toFile, s"-cp\n$classPath\n$main\n")
  }

  /** Two artefacts may bear the same file name; each keeps its place in the class path. */
  private def unique(names: Seq[String]): Seq[String] =
    names.zipWithIndex.map { case (name, at) => if (names.indexOf(name) == at) name else s"$at-$name" }

  /** A hard link costs no disk; a cache on another file system cannot give one. */
  private def place(jar: Path, target: Path): Unit =
    try Files.createLink(target, jar.toRealPath())
    catch { case _: FileSystemException | _: UnsupportedOperationException => Files.copy(jar, target) }
}
