package redline;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.Future;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.web.socket.BinaryMessage;
import org.springframework.web.socket.CloseStatus;
import org.springframework.web.socket.TextMessage;
import org.springframework.web.socket.WebSocketSession;
import org.springframework.web.socket.config.annotation.EnableWebSocket;
import org.springframework.web.socket.config.annotation.WebSocketConfigurer;
import org.springframework.web.socket.config.annotation.WebSocketHandlerRegistry;
import org.springframework.web.socket.handler.AbstractWebSocketHandler;
import org.springframework.web.socket.handler.ConcurrentWebSocketSessionDecorator;
import org.springframework.web.socket.server.standard.ServletServerContainerFactoryBean;

/** An echo, and the time every 100 ms: by Boot's scheduler, so on virtual threads if requests are. */
@Configuration
@EnableWebSocket
@EnableScheduling
class WebSockets implements WebSocketConfigurer {
    private static final Duration EVERY = Duration.ofMillis(100);
    private static final int LONGEST_BYTES = 64 * 1024;
    private static final int SLOWEST_MS = 10_000;

    private final TaskScheduler taskScheduler;

    WebSockets(TaskScheduler taskScheduler) {
        this.taskScheduler = taskScheduler;
    }

    @Override
    public void registerWebSocketHandlers(WebSocketHandlerRegistry handlers) {
        handlers.addHandler(new Echo(), "/ws/echo").addHandler(new Pushes(), "/ws/ts");
    }

    @Bean
    ServletServerContainerFactoryBean container() {
        var container = new ServletServerContainerFactoryBean();
        container.setMaxTextMessageBufferSize(LONGEST_BYTES);
        container.setMaxBinaryMessageBufferSize(LONGEST_BYTES);
        return container;
    }

    private static class Echo extends AbstractWebSocketHandler {
        @Override
        protected void handleTextMessage(WebSocketSession session, TextMessage message) throws IOException {
            session.sendMessage(message);
        }

        @Override
        protected void handleBinaryMessage(WebSocketSession session, BinaryMessage message) throws IOException {
            session.sendMessage(message);
        }
    }

    private class Pushes extends AbstractWebSocketHandler {
        @Override
        public void afterConnectionEstablished(WebSocketSession opened) {
            var session = new ConcurrentWebSocketSessionDecorator(opened, SLOWEST_MS, LONGEST_BYTES);
            Runnable push = () -> {
                try {
                    session.sendMessage(new TextMessage(Clock.nanos()));
                } catch (IOException ended) {
                    throw new UncheckedIOException(ended);
                }
            };
            opened.getAttributes().put("pushes", taskScheduler.scheduleAtFixedRate(push, Instant.now().plus(EVERY), EVERY));
        }

        @Override
        public void afterConnectionClosed(WebSocketSession session, CloseStatus status) {
            ((Future<?>) session.getAttributes().get("pushes")).cancel(false);
        }
    }
}
