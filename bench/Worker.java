import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

/** A server on a JVM that does some work for each answer: java Worker --port PORT --work STEPS. */
public final class Worker {
    private static volatile long last;

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(value(arguments, "--port"));
        int steps = Integer.parseInt(value(arguments, "--work"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        byte[] body = "path0".getBytes();
        server.createContext("/", exchange -> {
            last = work(steps, last | 1);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        System.out.println("listening on 127.0.0.1:" + server.getAddress().getPort());
    }

    /** xorshift: each step waits for the one before it, and none can be left out. */
    private static long work(int steps, long state) {
        for (int step = 0; step < steps; step++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
        }
        return state;
    }

    private static String value(String[] arguments, String name) {
        for (int at = 0; at + 1 < arguments.length; at++) {
            if (arguments[at].equals(name)) {
                return arguments[at + 1];
            }
        }
        throw new IllegalArgumentException(name + " is missing");
    }
}
