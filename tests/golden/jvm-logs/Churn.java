import java.util.concurrent.atomic.AtomicLong;
public class Churn {
    static byte[][] kept;
    public static void main(String[] a) throws Exception {
        long mb = Long.parseLong(a[0]); int keptMb = Integer.parseInt(a[1]);
        int threads = a.length > 2 ? Integer.parseInt(a[2]) : 1;
        kept = new byte[keptMb * 256][];
        AtomicLong left = new AtomicLong(mb * 256);
        Thread[] all = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            final int seed = t;
            all[t] = new Thread(() -> { int i = seed * 7919; while (left.decrementAndGet() > 0) { kept[(i = (i * 1103515245 + 12345) & 0x7fffffff) % kept.length] = new byte[4096 - 16]; } });
            all[t].start();
        }
        for (Thread t : all) t.join();
        byte[] large = new byte[3 << 20];
        System.gc();
        if (a.length > 3) { System.out.println(ProcessHandle.current().pid()); System.out.flush(); Thread.sleep(Long.parseLong(a[3])); }
        System.out.println(large.length);
    }
}
