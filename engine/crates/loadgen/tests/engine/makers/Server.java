import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** The server of the JDK: hello, and an echo. Tells its port. */
public final class Server {
    public static void main(String[] arguments) throws IOException {
        // Otherwise each answer waits for the client's delayed acknowledgement.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        server.createContext("/hello", exchange -> answer(exchange, "hello".getBytes(StandardCharsets.US_ASCII)));
        server.createContext("/echo", exchange -> answer(exchange, exchange.getRequestBody().readAllBytes()));
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
        System.out.println(server.getAddress().getPort());
    }

    private static void answer(HttpExchange exchange, byte[] body) throws IOException {
        exchange.sendResponseHeaders(200, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
