// Play, embedded, on its pekko-http server.
val playVersion = "3.0.11"
val playTapirVersion = "1.11.15"

val playServer = Seq(
  Servers.shared("play"),
  libraryDependencies += "org.playframework" %% "play-pekko-http-server" % playVersion,
  Compile / unmanagedResourceDirectories += (ThisBuild / baseDirectory).value / "shared" / "play-resources",
)

lazy val `play-vanilla` = Servers.server("play-vanilla").settings(playServer)

lazy val `play-tapir` = Servers
  .server("play-tapir")
  .settings(
    playServer,
    Servers.shared("tapir"),
    libraryDependencies += "com.softwaremill.sttp.tapir" %% "tapir-play-server" % playTapirVersion,
  )
