// Vert.x: the version that tapir's interpreters were made for, in vanilla too.
val vertxVersion = Servers.versionOr("4.5.13")
val vertxTapirVersion = "1.11.15"

val vertxWeb = "io.vertx" % "vertx-web" % vertxVersion

lazy val `vertx-vanilla` = Servers
  .server("vertx-vanilla")
  .settings(Servers.shared("vertx"), libraryDependencies += vertxWeb)

lazy val `vertx-tapir-future` = Servers
  .server("vertx-tapir-future")
  .settings(
    Servers.shared("vertx", "tapir"),
    libraryDependencies ++= Seq(vertxWeb, "com.softwaremill.sttp.tapir" %% "tapir-vertx-server" % vertxTapirVersion),
  )

lazy val `vertx-tapir-cats` = Servers
  .server("vertx-tapir-cats")
  .settings(
    Servers.shared("vertx", "tapir"),
    libraryDependencies ++= Seq(vertxWeb, "com.softwaremill.sttp.tapir" %% "tapir-vertx-server-cats" % vertxTapirVersion),
  )
