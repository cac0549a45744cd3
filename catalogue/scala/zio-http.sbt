// zio-http. tapir's interpreter is of the version that was made for it; it brings a newer Scala library, which both get.
val zioHttpVersion = "3.11.3"
val zioTapirVersion = "1.13.26"

val zioHttpServer = Seq(
  Servers.shared("zio-http"),
  libraryDependencies ++= Seq(
    "dev.zio" %% "zio-http" % zioHttpVersion,
    "org.scala-lang" %% "scala3-library" % "3.3.8",
    "dev.zio" %% "zio-logging-slf4j2" % "2.5.0",
  ),
)

lazy val `zio-http-vanilla` = Servers.server("zio-http-vanilla").settings(zioHttpServer)

lazy val `zio-http-tapir` = Servers
  .server("zio-http-tapir")
  .settings(
    zioHttpServer,
    Servers.shared("tapir"),
    libraryDependencies += "com.softwaremill.sttp.tapir" %% "tapir-zio-http-server" % zioTapirVersion,
  )
