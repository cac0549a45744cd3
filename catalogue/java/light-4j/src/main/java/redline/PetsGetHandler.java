package redline;

import com.networknt.config.JsonMapper;
import com.networknt.handler.LightHttpHandler;
import io.undertow.server.HttpServerExchange;
import io.undertow.util.Headers;
import java.util.List;

/** GET /v1/pets: the two pets of the specification's example. */
public final class PetsGetHandler implements LightHttpHandler {
    public record Pet(long id, String name, String tag) {}

    @Override
    public void handleRequest(HttpServerExchange exchange) {
        List<Pet> pets = List.of(new Pet(1, "catten", "cat"), new Pet(2, "doggy", "dog"));
        exchange.getResponseHeaders().put(Headers.CONTENT_TYPE, "application/json");
        exchange.getResponseSender().send(JsonMapper.toJson(pets));
    }
}
