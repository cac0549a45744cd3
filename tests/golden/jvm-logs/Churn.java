import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicLong;

/** Allocates so many MiB by 4 KiB, of which it keeps so many, on so many threads; then one large array, and a full collection. */
public class Churn {
    static byte[][] kept;

    public static void main(String[] args) throws Exception {
        if (args.length > 3) {
            System.out.println("ready");
            System.in.read();
        }
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
        if (args.length > 3) { // says what JMX knows, and waits
            long seen = -1;
            while (seen != collections()) { // until none runs any more
                seen = collections();
                Thread.sleep(1000);
            }
            for (GarbageCollectorMXBean one : ManagementFactory.getGarbageCollectorMXBeans()) {
                System.out.println(one.getName() + "=" + one.getCollectionCount());
            }
            System.out.println("done");
            System.in.read();
        }
        System.out.println(large.length);
    }

    private static long collections() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream().mapToLong(one -> one.getCollectionCount()).sum();
    }
}
