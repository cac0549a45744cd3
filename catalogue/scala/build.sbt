// One build for the servers on the JVM: a module is a server, so what one lacks costs that one alone. `./build TARGET...` drives it.
// Each family has a file of its own beside this one.
Global / onChangedBuildSource := IgnoreSourceChanges
ThisBuild / version := "0"

// The folder itself is not a server: building "everything" is naming every target.
lazy val root = project.in(file(".")).settings(publish / skip := true)
