// http4s on its two servers. Vanilla and tapir are of the same http4s, or their difference would not be tapir's.
val http4sVersion = "0.23.37"
val http4sTapirVersion = "1.13.19"

// Blaze ended with this version, which tapir knows in Scala 2.13. tapir brings newer cats than blaze: both get what it brings.
val blazeVersion = "0.23.17"
val blazeHttp4sVersion = "0.23.29"
val blazeTapirVersion = "1.11.15"

val ember = Seq("org.http4s" %% "http4s-ember-server" % http4sVersion)
val blaze = Seq("org.http4s" %% "http4s-blaze-server" % blazeVersion)
val blazeOverrides =
  Seq("http4s-core", "http4s-server").map("org.http4s" %% _ % blazeHttp4sVersion) ++
    Seq("cats-core", "cats-kernel").map("org.typelevel" %% _ % "2.13.0") ++
    Seq("cats-effect", "cats-effect-kernel", "cats-effect-std").map("org.typelevel" %% _ % "3.5.7")

lazy val `http4s-ember-vanilla` = Servers
  .server("http4s-ember-vanilla")
  .settings(
    Servers.shared("ember", "http4s-vanilla"),
    libraryDependencies ++= ember :+ "org.http4s" %% "http4s-dsl" % http4sVersion,
  )

lazy val `http4s-ember-tapir` = Servers
  .server("http4s-ember-tapir")
  .settings(
    Servers.shared("ember", "tapir", "tapir-fs2", "http4s-tapir"),
    libraryDependencies ++= ember :+ "com.softwaremill.sttp.tapir" %% "tapir-http4s-server" % http4sTapirVersion,
  )

lazy val `http4s-blaze-vanilla` = Servers
  .server("http4s-blaze-vanilla", Servers.scala2)
  .settings(
    Servers.shared("blaze", "http4s-vanilla"),
    libraryDependencies ++= blaze :+ "org.http4s" %% "http4s-dsl" % blazeHttp4sVersion,
    dependencyOverrides ++= blazeOverrides,
  )

lazy val `http4s-blaze-tapir` = Servers
  .server("http4s-blaze-tapir", Servers.scala2)
  .settings(
    Servers.shared("blaze", "tapir", "tapir-fs2", "http4s-tapir"),
    libraryDependencies ++= blaze :+ "com.softwaremill.sttp.tapir" %% "tapir-http4s-server" % blazeTapirVersion,
    dependencyOverrides ++= blazeOverrides,
  )
