package vanilla;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.vertx.core.AbstractVerticle;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Promise;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.buffer.Buffer;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.handler.BodyHandler;

/** Vert.x as its documentation writes it: a verticle per event loop with a Router, a route and a handler per path. */
public final class Main extends AbstractVerticle {
    private static final long BODY_LIMIT = 8L * 1024 * 1024;

    private final int port;
    private final int routes;

    private Main(int port, int routes) {
        this.port = port;
        this.routes = routes;
    }

    @Override
    public void start(Promise<Void> started) {
        vertx.createHttpServer()
                .requestHandler(router())
                .listen(port, "127.0.0.1")
                .<Void>mapEmpty()
                .onComplete(started);
    }

    private Router router() {
        Router router = Router.router(vertx);
        BodyHandler body = BodyHandler.create(false).setBodyLimit(BODY_LIMIT);
        for (int number = 0; number < routes; number++) {
            String path = "path" + number;
            String bytes = "bytes" + number;
            String string = "string" + number;
            router.get("/" + path).handler(context -> answer(context, path));
            router.post("/" + bytes)
                    .handler(body)
                    .handler(context -> answer(context, bytes + " " + content(context).length()));
            router.post("/" + string)
                    .handler(body)
                    .handler(context -> {
                        String text = content(context).toString(UTF_8);
                        answer(context, string + " " + text.getBytes(UTF_8).length);
                    });
        }
        return router;
    }

    /** The body; Vert.x has none where the request's is empty. */
    private static Buffer content(RoutingContext context) {
        Buffer body = context.body().buffer();
        return body == null ? Buffer.buffer() : body;
    }

    private static void answer(RoutingContext context, String text) {
        context.response().putHeader("content-type", "text/plain").end(text);
    }

    /** Arguments: port, routes of each kind, event loops. */
    public static void main(String[] arguments) {
        int port = Integer.parseInt(arguments[0]);
        int routes = Integer.parseInt(arguments[1]);
        int loops = Integer.parseInt(arguments[2]);
        Vertx vertx = Vertx.vertx(new VertxOptions().setEventLoopPoolSize(loops));
        vertx.deployVerticle(() -> new Main(port, routes), new DeploymentOptions().setInstances(loops))
                .onFailure(reason -> {
                    System.err.println("cannot serve on 127.0.0.1:" + port + ": " + reason.getMessage());
                    System.exit(1);
                });
    }
}
