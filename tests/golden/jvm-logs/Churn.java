import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicLong;

/** Allocates so many MiB by 4 KiB, of which it keeps so many, on so many threads; then one large array, and a full collection. */
public class Churn {
    static byte[][] kept;

    public static void main(String[] args) throws Exception {
        long mebibytes = Long.parseLong(args[0]);
        kept = new byte[Integer.parseInt(args[1]) * 256][];
        AtomicLong left = new AtomicLong(mebibytes * 256);
        Thread[] threads = new Thread[Integer.parseInt(args[2])];
        for (int t = 0; t < threads.length; t++) {
            final int seed = t;
            threads[t] = new Thread(() -> {
                int at = seed * 7919;
                while (left.decrementAndGet() > 0) {
                    at = (at * 1103515245 + 12345) & 0x7fffffff;
                    kept[at % kept.length] = new byte[4096 - 16];
                }
            });
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        byte[] large = new byte[3 << 20];
        System.gc();
        if (args.length > 3) { // says what JMX knows, and waits for a line
            for (GarbageCollectorMXBean one : ManagementFactory.getGarbageCollectorMXBeans()) {
                System.out.println(one.getName() + "=" + one.getCollectionCount());
            }
            System.out.println("unix ms=" + System.currentTimeMillis());
            System.out.println("done");
            System.in.read();
        }
        System.out.println(large.length);
    }
}
