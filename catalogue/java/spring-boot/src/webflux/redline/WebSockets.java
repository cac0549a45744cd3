package redline;

import java.time.Duration;
import java.util.Map;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.reactive.HandlerMapping;
import org.springframework.web.reactive.handler.SimpleUrlHandlerMapping;
import org.springframework.web.reactive.socket.WebSocketHandler;
import org.springframework.web.reactive.socket.WebSocketMessage;
import org.springframework.web.reactive.socket.WebSocketSession;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** An echo, and the time every 100 ms. */
@Configuration
class WebSockets {
    private static final Duration EVERY = Duration.ofMillis(100);
    private static final int AFTER_OTHER_ROUTES = 10;

    @Bean
    HandlerMapping webSocketRoutes() {
        Map<String, WebSocketHandler> handlers = Map.of("/ws/echo", WebSockets::echo, "/ws/ts", WebSockets::pushes);
        return new SimpleUrlHandlerMapping(handlers, AFTER_OTHER_ROUTES);
    }

    private static Mono<Void> echo(WebSocketSession session) {
        return session.send(session.receive().filter(WebSockets::isMessage).doOnNext(WebSocketMessage::retain));
    }

    private static boolean isMessage(WebSocketMessage frame) {
        return frame.getType() == WebSocketMessage.Type.TEXT || frame.getType() == WebSocketMessage.Type.BINARY;
    }

    private static Mono<Void> pushes(WebSocketSession session) {
        Flux<WebSocketMessage> times = Flux.interval(EVERY).onBackpressureDrop().map(tick -> session.textMessage(Clock.nanos()));
        return Mono.firstWithSignal(session.send(times), session.receive().then());
    }
}
