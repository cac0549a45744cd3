import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Answers after 70 units of work in one method, and 30 of the same work in another. A thread serves a connection.
 * Two threads pass a lock to each other, and hold it asleep: one of them waits for it at all times. A third one sleeps.
 *
 * `Burning PORT [BYTES]`: of each request it keeps so many bytes forever.
 */
public class Burning {
    private static final byte[] ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".getBytes();
    static volatile long sink;
    static volatile byte[] kept;
    static int leaking;
    static final Queue<byte[]> LEAKED = new ConcurrentLinkedQueue<>();
    static final ReentrantLock LOCK = new ReentrantLock(true);

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        leaking = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 0;
        for (int number = 0; number < 2; number++) beside("passing", Burning::contended);
        beside("idle", () -> LockSupport.park());
        ServerSocket listening = new ServerSocket(port, 64, InetAddress.getByName("127.0.0.1"));
        for (;;) {
            Socket connection = listening.accept();
            new Thread(() -> serve(connection)).start();
        }
    }

    private static void serve(Socket connection) {
        byte[] request = new byte[8192];
        try (Socket open = connection) {
            InputStream requests = open.getInputStream();
            int held = 0;
            for (int got; (got = requests.read(request, held, request.length - held)) > 0; ) {
                held += got;
                if (!new String(request, 0, held).endsWith("\r\n\r\n")) continue;
                held = 0;
                kept = allocated();
                if (leaking > 0) LEAKED.add(new byte[leaking]);
                sink += often(70 * 4000) + seldom(30 * 4000);
                open.getOutputStream().write(ANSWER);
            }
        } catch (java.io.IOException gone) {
            // The client has closed it.
        }
    }

    private static void beside(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void contended() {
        try {
            for (;;) {
                LOCK.lock();
                try {
                    Thread.sleep(20);
                } finally {
                    LOCK.unlock();
                }
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    static byte[] allocated() { return new byte[100_000]; }

    static long often(int units) {
        long value = sink;
        for (int at = 0; at < units; at++) value = value * 6364136223846793005L + at;
        return value;
    }

    static long seldom(int units) {
        long value = sink;
        for (int at = 0; at < units; at++) value = value * 6364136223846793005L + at;
        return value;
    }
}
