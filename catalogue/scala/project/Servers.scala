import sbt.*
import sbt.Keys.*

/** What the modules of this build have in common. A module is one server. */
object Servers {
  val scala2 = "2.13.16"
  val scala3 = "3.3.7"

  /** The oldest Java that the servers run on; the build itself wants 17. */
  private val oldestJava = "11"

  private val logback = "ch.qos.logback" % "logback-classic" % "1.5.18"

  /** The version that `./build TARGET@VERSION` asks for; None if it asks for the build's own. */
  private val version = sys.props.get("entry.version")

  /** The version asked for, or the build's own. */
  def versionOr(own: String): String = version.getOrElse(own)

  /** What follows the name of a target in `out/`. */
  val suffix: String = version.fold("")("@" + _)

  /** A module in the folder `name`, with the arguments and the logging that all servers share. */
  def server(name: String, scala: String = scala3): Project =
    Project(name, file(name)).settings(
      scalaVersion := scala,
      scalacOptions ++= Seq("-encoding", "utf8", "-release", oldestJava, "-deprecation", "-feature", "-Xfatal-warnings"),
      scalacOptions ++= (if (scala.startsWith("2.")) Seq("-Xsource:3") else Nil),
      javacOptions ++= Seq("--release", oldestJava),
      libraryDependencies += logback,
      Compile / doc / sources := Nil,
      Test / sources := Nil,
      shared("server"),
      Compile / unmanagedResourceDirectories += (ThisBuild / baseDirectory).value / "shared" / "resources",
    )

  /** The sources of `shared/FOLDER`, compiled into the module: its versions of Scala and of libraries may be other than its neighbour's. */
  def shared(folders: String*): Setting[?] =
    Compile / unmanagedSourceDirectories ++= folders.map((ThisBuild / baseDirectory).value / "shared" / _)
}
