// pekko-http. All of pekko's modules have to be of one version, whichever tapir's interpreter was made for, so all of them are named.
val pekkoVersion = Servers.versionOr("1.4.0")
val pekko = Seq(
  "org.apache.pekko" %% "pekko-actor-typed" % pekkoVersion,
  "org.apache.pekko" %% "pekko-stream" % pekkoVersion,
  "org.apache.pekko" %% "pekko-slf4j" % pekkoVersion,
  "org.apache.pekko" %% "pekko-http" % "1.3.0",
)
val pekkoTapirVersion = "1.11.15"

val pekkoServer = Seq(
  Servers.shared("pekko"),
  libraryDependencies ++= pekko,
  Compile / unmanagedResourceDirectories += (ThisBuild / baseDirectory).value / "shared" / "pekko-resources",
)

lazy val `pekko-vanilla` = Servers.server("pekko-vanilla").settings(pekkoServer)

lazy val `pekko-tapir` = Servers
  .server("pekko-tapir")
  .settings(
    pekkoServer,
    Servers.shared("tapir"),
    libraryDependencies += "com.softwaremill.sttp.tapir" %% "tapir-pekko-http-server" % pekkoTapirVersion,
  )
