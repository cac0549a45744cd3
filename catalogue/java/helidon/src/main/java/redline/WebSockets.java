package redline;

import io.helidon.common.buffers.BufferData;
import io.helidon.common.configurable.ThreadPoolSupplier;
import io.helidon.webserver.websocket.WsRouting;
import io.helidon.websocket.WsListener;
import io.helidon.websocket.WsSession;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** An echo, and the time every 100 ms from a virtual thread for each connection. */
class WebSockets {
    private static final long EVERY_NS = 100_000_000;
    private static final ExecutorService PUSHERS =
            ThreadPoolSupplier.builder().threadNamePrefix("push-").virtualThreads(true).build().get();

    static WsRouting.Builder routing() {
        return WsRouting.builder().endpoint("/ws/echo", Echo::new).endpoint("/ws/ts", Pushes::new);
    }

    private static class Echo implements WsListener {
        @Override
        public void onMessage(WsSession session, String text, boolean last) {
            session.send(text, last);
        }

        @Override
        public void onMessage(WsSession session, BufferData bytes, boolean last) {
            session.send(bytes, last);
        }

        @Override
        public void onPing(WsSession session, BufferData bytes) {
            session.pong(bytes);
        }
    }

    private static class Pushes implements WsListener {
        private Future<?> pusher;

        @Override
        public void onOpen(WsSession session) {
            pusher = PUSHERS.submit(() -> push(session));
        }

        private void push(WsSession session) {
            try {
                for (long due = System.nanoTime() + EVERY_NS; ; due += EVERY_NS) {
                    TimeUnit.NANOSECONDS.sleep(due - System.nanoTime());
                    session.send(Clock.nanos(), true);
                }
            } catch (InterruptedException closed) {
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public void onPing(WsSession session, BufferData bytes) {
            session.pong(bytes);
        }

        @Override
        public void onClose(WsSession session, int status, String reason) {
            pusher.cancel(true);
        }
    }
}
