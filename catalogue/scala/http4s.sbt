// http4s on its two servers. Blaze ended with http4s 0.23.17, and tapir's http4s 0.23 artefacts for it are of Scala 2.13.
val http4sVersion = "0.23.30"

lazy val `http4s-ember-vanilla` = Servers
  .server("http4s-ember-vanilla")
  .settings(
    Servers.shared("http4s", "ember"),
    libraryDependencies ++= Seq(
      "org.http4s" %% "http4s-ember-server" % http4sVersion,
      "org.http4s" %% "http4s-dsl" % http4sVersion,
    ),
  )
