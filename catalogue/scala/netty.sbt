// Netty: tapir's own servers on it, and Netty alone in the version that they use.
val nettyVersion = Servers.versionOr("4.1.118.Final")
val nettyTapirVersion = "1.11.15"

lazy val `netty-vanilla` = Servers
  .server("netty-vanilla")
  .settings(
    libraryDependencies ++= Seq(
      "io.netty" % "netty-codec-http" % nettyVersion,
      ("io.netty" % "netty-transport-native-epoll" % nettyVersion).classifier("linux-x86_64").classifier("linux-aarch_64"),
    ),
  )

lazy val `netty-tapir-future` = Servers
  .server("netty-tapir-future")
  .settings(
    Servers.shared("tapir"),
    libraryDependencies += "com.softwaremill.sttp.tapir" %% "tapir-netty-server" % nettyTapirVersion,
  )

lazy val `netty-tapir-cats` = Servers
  .server("netty-tapir-cats")
  .settings(
    Servers.shared("tapir", "tapir-fs2"),
    libraryDependencies += "com.softwaremill.sttp.tapir" %% "tapir-netty-server-cats" % nettyTapirVersion,
  )

lazy val `netty-tapir-sync` = Servers
  .server("netty-tapir-sync")
  .settings(
    Servers.shared("tapir"),
    libraryDependencies += "com.softwaremill.sttp.tapir" %% "tapir-netty-server-sync" % nettyTapirVersion,
  )
