package redline;

import io.helidon.common.configurable.Resource;
import io.helidon.common.pki.Keys;
import io.helidon.common.tls.Tls;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.WebServerConfig;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.nio.file.Path;
import java.util.List;

/** Arguments: HOST PORT PROTOCOL TLS, the last being a folder. HTTP/1.1 and HTTP/2 are always both on. */
public class Petstore {
    public record Pet(long id, String name, String tag) {}

    public static void main(String[] args) {
        WebServerConfig.Builder server = WebServer.builder()
                .host(args[0])
                .port(Integer.parseInt(args[1]))
                .routing(Petstore::routing)
                .addRouting(WebSockets.routing());
        if (args[2].endsWith("+tls")) {
            Keys keys = Keys.builder()
                    .keystore(store -> store.keystore(Resource.create(Path.of(args[3], "server.keystore")))
                            .keyAlias("server")
                            .passphrase("password"))
                    .build();
            server.tls(Tls.builder().privateKey(keys).privateKeyCertChain(keys).build());
        }
        server.build().start();
    }

    static void routing(HttpRouting.Builder routing) {
        routing.get("/v1/pets", Petstore::pets);
    }

    static void pets(ServerRequest request, ServerResponse response) {
        response.send(List.of(new Pet(1, "catten", "cat"), new Pet(2, "doggy", "dog")));
    }
}
