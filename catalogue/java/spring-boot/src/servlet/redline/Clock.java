package redline;

import java.time.Instant;

/** The server's clock, as it is pushed. */
class Clock {
    private static final long NANOS_PER_SECOND = 1_000_000_000L;

    /** The time since 1970 in nanoseconds, as decimal text. */
    static String nanos() {
        Instant now = Instant.now();
        return Long.toString(now.getEpochSecond() * NANOS_PER_SECOND + now.getNano());
    }
}
