package redline;

import io.helidon.common.buffers.BufferData;
import io.helidon.webserver.websocket.WsRouting;
import io.helidon.websocket.WsListener;
import io.helidon.websocket.WsSession;
import java.time.Duration;

/** An echo, and the time every 100 ms from a virtual thread for each connection. */
class WebSockets {
    private static final long EVERY_MS = 100;

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
        private Thread pusher;

        @Override
        public void onOpen(WsSession session) {
            pusher = Thread.startVirtualThread(() -> {
                try {
                    for (long due = System.nanoTime(); ; ) {
                        due += EVERY_MS * 1_000_000;
                        Thread.sleep(Duration.ofNanos(Math.max(0, due - System.nanoTime())));
                        session.send(Clock.nanos(), true);
                    }
                } catch (InterruptedException closed) {
                    // The connection is closed.
                }
            });
        }

        @Override
        public void onPing(WsSession session, BufferData bytes) {
            session.pong(bytes);
        }

        @Override
        public void onClose(WsSession session, int status, String reason) {
            pusher.interrupt();
        }
    }
}
