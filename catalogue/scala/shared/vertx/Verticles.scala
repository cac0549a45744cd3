package redline

import io.vertx.core.{AbstractVerticle, DeploymentOptions, Promise, Vertx, VertxOptions}
import io.vertx.ext.web.Router

/** A verticle per event loop, each with a server and a router of its own on the same port, as Vert.x's documentation scales a server. */
object Verticles {
  def deploy(vertx: Vertx, arguments: Arguments)(router: Vertx => Router): Unit = {
    val options = new DeploymentOptions().setInstances(arguments.cpus)
    vertx
      .deployVerticle(() => new ServerVerticle(arguments, router), options)
      .onFailure(reason => Serving.cannotServe(arguments, reason))
    ()
  }

  /** Vert.x with as many event loops as verticles. */
  def vertx(arguments: Arguments): Vertx = Vertx.vertx(new VertxOptions().setEventLoopPoolSize(arguments.cpus))
}

final class ServerVerticle(arguments: Arguments, router: Vertx => Router) extends AbstractVerticle {
  override def start(started: Promise[Void]): Unit = {
    vertx.createHttpServer().requestHandler(router(vertx)).listen(arguments.port, arguments.host).mapEmpty[Void]().onComplete(started)
    ()
  }
}
